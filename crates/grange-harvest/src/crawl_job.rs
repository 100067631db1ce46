//! What the scheduler planned, in the words of the native crawler. A pure function.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use grange_base::{Period, Size};
use grange_crawl::candidate::without_user_info;
use grange_crawl::fetch::login::{FormLogin, FormMethod, SuccessCheck};
use grange_crawl::job::{Budgets, ByteLimitFrom, Credential, CredentialKind, DomainBudget, Job, Limits};
use grange_crawl::scope::Traps;
use grange_crawl::template::{self, Template, Values};
use grange_model::harvest::{self as model, DomainName, JobSpec, LoginForm, seeds};

use crate::engine::{Login, Operator, Order};

/// What the harvester adds where the template is silent.
#[derive(Clone, Copy, Debug)]
pub struct Defaults {
    pub chunk_size: Size,
    pub chunk_age: Period,
}

/// The crawl, and seeds that were left out with the reason.
#[derive(Debug)]
pub struct Made {
    pub job: Job,
    pub problems: Vec<String>,
}

/// Turns an order into a crawl, or says why that cannot be.
pub fn crawl_job(order: &Order, defaults: Defaults) -> Result<Made, String> {
    let spec = &order.spec;
    let template = template(spec, &order.who, defaults)?;
    let (mut seeds, mut problems) = (Vec::new(), Vec::new());
    for line in spec.seeds() {
        match seeds::seed(line) {
            Ok(seed) => seeds.extend(seed),
            Err(reason) => {
                // Logs and the job's page show it, and it may have a password.
                let url = if line.contains("://") { line.to_owned() } else { format!("http://{line}") };
                let line = without_user_info(&url);
                problems.push(format!("the seed {line} was left out: {reason}"));
            }
        }
    }
    if seeds.is_empty() {
        let why = problems.first().map(|first| format!(": {first}")).unwrap_or_default();
        return Err(format!("the job has no seed that can be crawled{why}"));
    }
    let job = Job {
        name: spec.job.id.to_string(),
        seeds,
        template,
        budgets: budgets(spec),
        traps: traps(spec),
        credentials: credentials(order),
        info: info(order),
    };
    Ok(Made { job, problems })
}

fn template(spec: &JobSpec, who: &Operator, defaults: Defaults) -> Result<Template, String> {
    let named = |error: template::TemplateError| {
        format!("the template {} (version {}): {error}", spec.job.template, spec.job.template_version)
    };
    let mut template = template::parse(&spec.template_text).map_err(named)?;
    if template.fetch.contact_url.is_empty() {
        template.fetch.contact_url.clone_from(&who.contact_url);
    }
    if template.fetch.from.is_empty() {
        template.fetch.from.clone_from(&who.from);
    }
    if template.fetch.contact_url.is_empty() {
        // Nobody is to be bothered by somebody nameless: who runs this and where, if nothing better is said.
        let agent = template.fetch.user_agent.replace("+{contact_url}", &who.address());
        template.fetch.user_agent = agent;
    }
    let values = Values {
        job_id: spec.job.id.to_string(),
        harvest: spec.job.harvest_name.to_string(),
        operator: who.operator.clone(),
        organization: who.organization.clone(),
        contact_url: who.contact_url.clone(),
        from: who.from.clone(),
        template: spec.job.template.to_string(),
    };
    let mut template = template.fill(&values).map_err(named)?;
    // How the names of files begin is what joins them to their job, whatever a template says.
    template.write.prefix = spec.file_prefix();
    if !template.write.name.starts_with("{prefix}-") {
        template.write.name = format!("{{prefix}}-{}", template.write.name);
    }
    if template.write.chunk_size.0 == 0 && template.write.chunk_age.0.is_zero() {
        template.write.chunk_size = defaults.chunk_size;
        template.write.chunk_age = defaults.chunk_age;
    }
    Ok(template)
}

/// Every domain within the tighter of its own limits and the job's. A domain without a configuration is held to the limits
/// of the configurations that hold its seeds; domains that only lend pictures, to the job's. The running time is the whole
/// crawl's.
fn budgets(spec: &JobSpec) -> Budgets {
    let job = spec.job.limits;
    let budget = |limits: model::Limits, seconds: model::Limit| DomainBudget {
        limits: Limits {
            max_objects: limits.objects.number(),
            max_bytes: limits.bytes.number(),
            max_seconds: seconds.number(),
        },
        // Whose limit it was is told when the report is kept, from the rows.
        bytes_from: ByteLimitFrom::Harvest,
    };
    let mut domains: BTreeMap<String, DomainBudget> = BTreeMap::new();
    for configuration in &spec.configurations {
        let own = budget(configuration.limits.tighter(job), configuration.limits.running_s);
        domains.insert(configuration.domain.to_string(), own);
    }
    for (domain, limits) in seeded_elsewhere(spec) {
        domains.entry(domain.to_string()).or_insert_with(|| budget(limits.tighter(job), limits.running_s));
    }
    Budgets {
        crawl: Limits { max_seconds: job.running_s.number(), ..Limits::default() },
        domains,
        other_domains: budget(job, model::Limit::NONE),
    }
}

/// The domains of seeds, with the tightest limits of the configurations that hold them.
fn seeded_elsewhere(spec: &JobSpec) -> BTreeMap<DomainName, model::Limits> {
    let mut domains: BTreeMap<DomainName, model::Limits> = BTreeMap::new();
    for configuration in &spec.configurations {
        let urls = configuration.seeds.iter().filter_map(|line| seeds::seed(line).ok()?);
        for domain in urls.filter_map(|url| seeds::domain_of(&url::Url::parse(&url).ok()?).ok()) {
            let limits = domains.entry(domain).or_insert(configuration.limits);
            *limits = limits.tighter(configuration.limits);
        }
    }
    domains
}

fn traps(spec: &JobSpec) -> Traps {
    let mut domains: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for configuration in spec.configurations.iter().filter(|one| !one.traps.is_empty()) {
        domains.entry(configuration.domain.to_string()).or_default().extend_from_slice(&configuration.traps);
    }
    Traps { global: spec.traps.clone(), harvest: Vec::new(), domains }
}

fn credentials(order: &Order) -> Vec<Credential> {
    let credential = |login: &Login| Credential {
        domain: login.domain.clone(),
        kind: match &login.form {
            Some(form) => CredentialKind::Form(filled_in(login, form)),
            None => CredentialKind::Http {
                origin: Some(origin(login)),
                realm: Some(login.realm.clone()).filter(|realm| !realm.is_empty()),
                user: login.user.clone(),
                password: login.password.clone(),
            },
        },
    };
    order.logins.iter().map(credential).collect()
}

/// Scheme, host and port of the page that a login was entered for. A login of an earlier version may name no page: it is for
/// the domain's own host, over https only.
fn origin(login: &Login) -> String {
    let origin = url::Url::parse(&login.url).ok().map(|url| url.origin()).filter(url::Origin::is_tuple);
    let domain = &login.domain;
    origin.map_or_else(
        || match domain.parse::<Ipv6Addr>() {
            Ok(address) => format!("https://[{address}]"),
            Err(_) => format!("https://{domain}"),
        },
        |origin| origin.ascii_serialization(),
    )
}

fn filled_in(login: &Login, form: &LoginForm) -> FormLogin {
    let LoginForm { user_field, secret_field, page_url, sets_cookie, page_matches, page_lacks, .. } =
        form.clone();
    let mut fields = vec![(user_field, login.user.clone()), (secret_field, login.password.clone())];
    fields.extend(form.fields.iter().cloned());
    let success = SuccessCheck { sets_cookie, page_matches, page_lacks, ..SuccessCheck::default() };
    FormLogin { login_url: login.url.clone(), method: FormMethod::Post, fields, page_url, success }
}

/// The lines of the warcinfo records, under NetarchiveSuite's names.
fn info(order: &Order) -> Vec<(String, String)> {
    let (spec, who) = (&order.spec, &order.who);
    let job = &spec.job;
    let mut lines = vec![("operator".to_owned(), who.operator.clone())];
    let mut add = |name: &str, value: String| {
        if !value.is_empty() {
            lines.push((format!("harvestInfo.{name}"), one_line(&value)));
        }
    };
    add("version", "0.6".to_owned());
    add("jobId", job.id.to_string());
    add("channel", job.channel.to_string());
    add("harvestNum", job.run.saturating_sub(1).to_string());
    add("origHarvestDefinitionID", job.harvest.to_string());
    add("maxBytesPerDomain", job.limits.bytes.number().to_string());
    add("maxObjectsPerDomain", job.limits.objects.number().to_string());
    add("templateName", job.template.to_string());
    add("origHarvestDefinitionName", job.harvest_name.to_string());
    add("origHarvestDefinitionComments", spec.harvest_comments.clone());
    add("scheduleName", spec.schedule.as_ref().map(ToString::to_string).unwrap_or_default());
    add("harvestFilenamePrefix", spec.file_prefix());
    add("jobSubmitDate", job.submitted_at.map(|at| at.to_string()).unwrap_or_default());
    add("performer", who.organization.clone());
    add("audience", spec.audience.clone());
    lines
}

/// A warcinfo line cannot hold a line end.
fn one_line(text: &str) -> String {
    text.split(['\r', '\n']).map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[path = "crawl_job_tests.rs"]
mod tests;
