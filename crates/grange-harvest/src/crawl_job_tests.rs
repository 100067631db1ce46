use grange_base::Clock;
use grange_crawl::log::CrawlLine;
use grange_crawl::record::NoOracle;
use grange_crawl::template::{NetworkSettings, shipped};
use grange_model::harvest::{
    HarvestId, Job as ModelJob, JobConfiguration, JobId, JobStatus, Limit, Limits as ModelLimits,
};
use grange_testkit::web::{Options, Profile, Web};
use jiff::Timestamp;
use tokio::sync::{mpsc, watch};

use super::*;
use crate::engine::{Engine as _, OracleHandle, Run, Wish};
use crate::folder::JobFolder;
use crate::native::Native;
use crate::seed_owners::SeedOwners;
use crate::{statistics, test_bed};

const DEFAULTS: Defaults = Defaults { chunk_size: Size(1000), chunk_age: Period::from_secs(60) };

fn limits(objects: i64, bytes: i64, running_s: i64) -> ModelLimits {
    let limit = |number| Limit::new(number).unwrap();
    ModelLimits { objects: limit(objects), bytes: limit(bytes), running_s: limit(running_s) }
}

fn configuration(domain: &str, limits: ModelLimits, seeds: &[&str], traps: &[&str]) -> JobConfiguration {
    JobConfiguration {
        domain: domain.parse().unwrap(),
        configuration: "defaultconfig".parse().unwrap(),
        limits,
        expected_objects: 1,
        seeds: seeds.iter().map(|seed| (*seed).to_owned()).collect(),
        traps: traps.iter().map(|trap| (*trap).to_owned()).collect(),
    }
}

fn order(template: &str, job_limits: ModelLimits, configurations: Vec<JobConfiguration>) -> Order {
    let job = ModelJob {
        id: JobId(7),
        harvest: HarvestId(3),
        harvest_name: "Elections 2026".parse().unwrap(),
        run: 2,
        status: JobStatus::Submitted,
        channel: "focused".parse().unwrap(),
        snapshot: false,
        template: "default".parse().unwrap(),
        template_version: 4,
        limits: job_limits,
        configurations: configurations.len() as u64,
        expected_objects: 1,
        created_at: Timestamp::UNIX_EPOCH,
        submitted_at: Some(Timestamp::UNIX_EPOCH),
        started_at: None,
        ended_at: None,
        harvester: None,
        lease_until: None,
        attempts: 1,
        stop_wanted: false,
        harvest_errors: None,
        harvest_error_details: None,
        upload_errors: None,
        upload_error_details: None,
        resubmitted_as: None,
        continuation_of: None,
        waiting_files: 0,
        waiting_bytes: 0,
        waiting_reason: None,
    };
    let spec = JobSpec {
        job,
        template_text: template.to_owned(),
        harvest_comments: "two\nlines".to_owned(),
        audience: String::new(),
        schedule: Some("daily".parse().unwrap()),
        configurations,
        traps: vec![".*/calendar/.*".to_owned()],
        aliases: Vec::new(),
        duplicate_reduction_jobs: Vec::new(),
        credentials: Vec::new(),
    };
    let who = Operator { contact_url: "https://library.example/crawl".to_owned(), ..Operator::default() };
    Order { spec, logins: Vec::new(), who }
}

const DEFAULT: &str = "name = \"x\"\n";

fn made(order: &Order) -> Job {
    crawl_job(order, DEFAULTS).unwrap().job
}

#[test]
fn each_domain_gets_the_tighter_of_its_own_limits_and_the_jobs() {
    for (own, job, objects, bytes) in [
        (limits(-1, -1, -1), limits(-1, -1, -1), -1, -1),
        (limits(10, 500, -1), limits(-1, -1, -1), 10, 500),
        (limits(-1, -1, -1), limits(20, 900, -1), 20, 900),
        (limits(10, 900, -1), limits(20, 500, -1), 10, 500),
        (limits(0, -1, -1), limits(5, 0, -1), 0, 0),
    ] {
        let order = order(DEFAULT, job, vec![configuration("a.dk", own, &["http://a.dk/"], &[])]);
        let budgets = made(&order).budgets;
        let budget = budgets.domains["a.dk"].limits;
        assert_eq!((budget.max_objects, budget.max_bytes), (objects, bytes), "{own:?} in {job:?}");
        let other = budgets.other_domains.limits;
        assert_eq!((other.max_objects, other.max_bytes), (job.objects.number(), job.bytes.number()));
        assert_eq!((budgets.crawl.max_objects, budgets.crawl.max_bytes), (-1, -1));
    }
}

#[test]
fn a_domain_without_a_configuration_is_held_to_the_limits_of_those_that_seed_it() {
    let none = limits(-1, -1, -1);
    let configurations = vec![
        configuration("a.dk", limits(3, -1, 60), &["http://a.dk/", "social.org/a", "http://b.dk/"], &[]),
        configuration("b.dk", limits(50, 500, -1), &["http://www.social.org/b", "http://c.dk/"], &[]),
    ];
    let budgets = made(&order(DEFAULT, limits(40, -1, -1), configurations)).budgets;
    let of = |domain: &str| {
        let limits = budgets.domains[domain].limits;
        (limits.max_objects, limits.max_bytes, limits.max_seconds)
    };
    assert_eq!(of("a.dk"), (3, -1, 60));
    assert_eq!(of("social.org"), (3, 500, 60), "the tightest of both");
    assert_eq!(of("b.dk"), (40, 500, -1), "its own configuration decides");
    assert_eq!(of("c.dk"), (40, 500, -1));
    assert_eq!(budgets.domains.len(), 4);
    assert_eq!(budgets.other_domains.limits.max_bytes, none.bytes.number());
}

/// The crawl log of a folder: domain of the URL and whether the line is an object.
fn logged(folder: &JobFolder) -> Vec<(String, bool)> {
    let text = std::fs::read_to_string(folder.logs().join("crawl.log")).unwrap();
    let line = |line: &str| {
        let line = CrawlLine::parse(line).unwrap();
        let host = line.url.strip_prefix("dns:").map(str::to_owned);
        let host = host.or_else(|| Some(url::Url::parse(&line.url).ok()?.host_str()?.to_owned())).unwrap();
        let page = line.status.0 >= 0 && !line.url.starts_with("dns:") && !line.url.ends_with("/robots.txt");
        (DomainName::of_host(&host).unwrap().to_string(), page)
    };
    text.lines().map(line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn seeds_of_other_domains_keep_the_limits_of_their_configuration_and_are_counted_for_it() {
    let options = Options { hosts: 3, pages: 20, seed: 11, profile: Profile::Plain, ..Options::default() };
    let web = Web::new(Options { suffix: "dk".to_owned(), ..options });
    let server = web.serve("127.0.0.1:0").await.unwrap();
    let base = tempfile::tempdir().unwrap();
    let folder = test_bed::folder(base.path(), &test_bed::papers(7, &[]));
    let seeds = web.seeds();
    let seeds: Vec<_> = seeds.iter().map(String::as_str).collect();
    let none = limits(-1, -1, -1);
    let order = order(DEFAULT, none, vec![configuration("mine.dk", limits(3, -1, -1), &seeds, &[])]);
    let quick = test_bed::crawl_job(&server, Vec::new()).template;
    let job = Job { template: quick, ..made(&order) };
    SeedOwners::save(&folder, &order.spec).unwrap();
    std::fs::create_dir_all(folder.crawl()).unwrap();
    folder.save("crawl/job.json", &job).unwrap();
    let (progress, _) = watch::channel(None);
    let (chunks, _closed) = mpsc::unbounded_channel();
    let (_wish, wish) = watch::channel(Wish::Run);
    let run = Run {
        folder: folder.clone(),
        oracle: OracleHandle(std::sync::Arc::new(NoOracle)),
        progress,
        chunks,
        wish,
        stop_within: std::time::Duration::from_secs(60),
    };
    let network = NetworkSettings { all_hosts_to: server.addr().to_string(), ..NetworkSettings::default() };
    let engine = Native { clock: Clock::system(), defaults: DEFAULTS, network };
    let outcome = engine.run(run).await.unwrap();
    server.stop().await;

    let log = logged(&folder);
    let domains: std::collections::BTreeSet<_> = log.iter().map(|(domain, _)| domain).collect();
    assert_eq!(domains.len(), 3, "{domains:?}");
    for domain in domains {
        let pages = log.iter().filter(|(of, page)| of == domain && *page).count();
        assert!((1..=3).contains(&pages), "{pages} of {domain}");
    }
    let counted: Vec<_> =
        outcome.domains.iter().filter(|one| one.objects > 0).map(|one| one.domain.as_str()).collect();
    assert_eq!(counted, ["mine.dk"]);
    let objects = statistics::of_job(&folder, &[]).unwrap().objects;
    assert_eq!(outcome.domains.iter().map(|one| one.objects).sum::<u64>(), objects);
    assert_eq!(outcome.objects, objects);
    assert!(objects >= log.iter().filter(|(_, page)| *page).count() as u64);
}

#[test]
fn the_running_time_is_the_whole_crawls() {
    let configurations = vec![configuration("a.dk", limits(-1, -1, 60), &["http://a.dk/"], &[])];
    let budgets = made(&order(DEFAULT, limits(-1, -1, 3600), configurations)).budgets;
    assert_eq!(budgets.crawl.max_seconds, 3600);
    assert_eq!(budgets.domains["a.dk"].limits.max_seconds, 60);
    assert_eq!(budgets.other_domains.limits.max_seconds, -1);
}

#[test]
fn seeds_and_traps_of_all_configurations_reach_the_crawler_once() {
    let none = limits(-1, -1, -1);
    let order = order(
        DEFAULT,
        none,
        vec![
            configuration("a.dk", none, &["http://a.dk/", "http://www.a.dk/", "http://a.dk/"], &[".*a1"]),
            configuration("b.dk", none, &["b.dk", "http://no such host/", "https://bücher.dk/"], &[]),
        ],
    );
    let made = crawl_job(&order, DEFAULTS).unwrap();
    assert_eq!(made.job.seeds, ["http://a.dk/", "http://www.a.dk/", "http://b.dk", "https://bücher.dk/"]);
    assert_eq!(made.problems.len(), 1);
    assert!(made.problems[0].contains("no such host"), "{:?}", made.problems);
    assert_eq!(made.job.traps.global, [".*/calendar/.*"]);
    assert_eq!(made.job.traps.domains.len(), 1);
    assert_eq!(made.job.traps.domains["a.dk"], [".*a1"]);
}

#[test]
fn files_are_named_after_job_and_harvest_whatever_the_template_says() {
    let none = limits(-1, -1, -1);
    let seeds = || vec![configuration("a.dk", none, &["http://a.dk/"], &[])];
    for (text, name) in [
        (DEFAULT, "{prefix}-{timestamp17}-{serial:5}-{host}"),
        (
            "name = \"x\"\n[write]\nprefix = \"OWN\"\nname = \"{prefix}-{serial:5}-{timestamp17}\"\n",
            "{prefix}-{serial:5}-{timestamp17}",
        ),
        (
            "name = \"x\"\n[write]\nname = \"mine-{serial:5}-{timestamp17}\"\n",
            "{prefix}-mine-{serial:5}-{timestamp17}",
        ),
        (
            "name = \"x\"\n[write]\nname = \"{serial:5}-{prefix}-{timestamp17}\"\n",
            "{prefix}-{serial:5}-{prefix}-{timestamp17}",
        ),
        (
            "name = \"x\"\n[write]\nname = \"{prefix}_{serial:5}-{timestamp17}\"\n",
            "{prefix}-{prefix}_{serial:5}-{timestamp17}",
        ),
        (
            "name = \"x\"\n[write]\nname = \"{prefix}{serial:5}-{timestamp17}\"\n",
            "{prefix}-{prefix}{serial:5}-{timestamp17}",
        ),
    ] {
        let write = made(&order(text, none, seeds())).template.write;
        assert_eq!((write.prefix.as_str(), write.name.as_str()), ("7-3", name), "{text}");
    }
}

#[test]
fn chunks_are_closed_by_the_template_or_else_by_the_settings() {
    let none = limits(-1, -1, -1);
    let seeds = || vec![configuration("a.dk", none, &["http://a.dk/"], &[])];
    for (text, size, age) in [
        (DEFAULT, 1000, 60),
        ("name = \"x\"\n[write]\nchunk_size = \"5MB\"\n", 5_000_000, 0),
        ("name = \"x\"\n[write]\nchunk_age = \"1h\"\n", 0, 3600),
    ] {
        let write = made(&order(text, none, seeds())).template.write;
        assert_eq!((write.chunk_size.0, write.chunk_age.0.as_secs()), (size, age), "{text}");
    }
}

#[test]
fn web_masters_learn_who_crawls() {
    let none = limits(-1, -1, -1);
    let who = |contact: &str, from: &str, operator: &str| Operator {
        contact_url: contact.to_owned(),
        from: from.to_owned(),
        operator: operator.to_owned(),
        host: "crawl1".to_owned(),
        ..Operator::default()
    };
    for (who, word) in [
        (who("https://library.example/crawl", "", ""), "+https://library.example/crawl"),
        (who("", "web@library.example", "The library"), "web@library.example"),
        (who("", "", "The library"), "The library, grange@crawl1"),
        (who("", "", "anna@library.example"), "anna@library.example"),
        (who("", "", ""), "grange@crawl1"),
    ] {
        let mut order = order(DEFAULT, none, vec![configuration("a.dk", none, &["http://a.dk/"], &[])]);
        order.who = who;
        let fetch = made(&order).template.fetch;
        assert!(fetch.full_user_agent().contains(word), "{word} in {}", fetch.full_user_agent());
        assert!(fetch.check().is_ok());
    }
}

#[test]
fn logins_and_papers_come_along() {
    let none = limits(-1, -1, -1);
    let mut order = order(DEFAULT, none, vec![configuration("a.dk", none, &["http://a.dk/"], &[])]);
    let login = |url: &str, realm: &str| Login {
        domain: "a.dk".to_owned(),
        realm: realm.to_owned(),
        user: "reader".to_owned(),
        password: "secret".to_owned(),
        url: url.to_owned(),
        form: None,
    };
    // A password is for one origin, also where no page, or none that can be read, was given for it.
    let of_address = Login { domain: "2001:db8::1".to_owned(), ..login("", "") };
    order.logins = vec![
        login("", ""),
        login("a.dk/x", ""),
        of_address,
        login("https://www.a.dk:443/members/", "Members"),
    ];
    let job = made(&order);
    let realms: Vec<_> = job
        .credentials
        .iter()
        .map(|credential| match &credential.kind {
            CredentialKind::Http { origin, realm, user, password } => {
                assert_eq!((user.as_str(), password.as_str()), ("reader", "secret"));
                (origin.as_deref(), realm.as_deref())
            }
            CredentialKind::Form(_) => panic!("no form was asked for"),
        })
        .collect();
    let expected = [
        (Some("https://a.dk"), None),
        (Some("https://a.dk"), None),
        (Some("https://[2001:db8::1]"), None),
        (Some("https://www.a.dk"), Some("Members")),
    ];
    assert_eq!(realms, expected);
    let form = LoginForm {
        user_field: "name".to_owned(),
        secret_field: "pass".to_owned(),
        fields: vec![("remember".to_owned(), "1".to_owned())],
        page_url: Some("http://a.dk/login".to_owned()),
        sets_cookie: Some("sid".to_owned()),
        page_matches: None,
        page_lacks: None,
    };
    order.logins = vec![Login { url: "http://a.dk/in".to_owned(), form: Some(form), ..login("", "") }];
    let [Credential { kind: CredentialKind::Form(form), .. }] = &made(&order).credentials[..] else {
        panic!("a form was asked for")
    };
    let fields: Vec<_> = form.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(fields, [("name", "reader"), ("pass", "secret"), ("remember", "1")]);
    assert_eq!(
        (form.login_url.as_str(), form.page_url.as_deref()),
        ("http://a.dk/in", Some("http://a.dk/login"))
    );
    assert_eq!(form.success.sets_cookie.as_deref(), Some("sid"));
    assert!(form.check().is_ok());
    let line = |name: &str| {
        job.info.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    assert_eq!(line("harvestInfo.jobId"), "7");
    assert_eq!(line("harvestInfo.harvestNum"), "1");
    assert_eq!(line("harvestInfo.origHarvestDefinitionComments"), "two lines");
    assert_eq!(line("harvestInfo.scheduleName"), "daily");
    assert!(!format!("{order:?}").contains("secret"));
}

#[test]
fn what_cannot_be_crawled_says_why() {
    let none = limits(-1, -1, -1);
    let seeds = |seeds: &[&str]| vec![configuration("a.dk", none, seeds, &[])];
    for (text, seeds, words) in [
        ("name = \"x\"\n[scpoe]\n", seeds(&["http://a.dk/"]), ["default (version 4)", "scpoe"]),
        (DEFAULT, seeds(&[]), ["no seed", "no seed"]),
        (DEFAULT, seeds(&["gopher://a.dk/"]), ["no seed", "gopher"]),
        (DEFAULT, seeds(&["http://u:s33dpass@a.dk/x"]), ["http://a.dk/x", "no password"]),
        (DEFAULT, seeds(&["u:s33dpass@a.dk/x"]), ["http://a.dk/x", "left out"]),
        (DEFAULT, seeds(&["ftp://u:s33dpass@a .dk/x"]), ["ftp://a .dk/x", "blanks"]),
    ] {
        let reason = crawl_job(&order(text, none, seeds), DEFAULTS).unwrap_err();
        assert!(!reason.contains("s33dpass"), "{reason}");
        assert!(words.iter().all(|word| reason.contains(word)), "{reason}");
    }
}

#[test]
fn every_shipped_template_makes_a_crawl() {
    let none = limits(-1, -1, -1);
    for (name, text) in shipped() {
        let made = crawl_job(
            &order(text, none, vec![configuration("a.dk", none, &["http://a.dk/"], &[])]),
            DEFAULTS,
        );
        assert!(made.is_ok(), "{name}: {made:?}");
    }
}
