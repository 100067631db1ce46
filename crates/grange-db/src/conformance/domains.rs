//! What domains, their configurations, seed lists and logins promise.

use std::time::Duration;

use grange_model::harvest::{CustomField, FieldKind, FieldNoun, Limit, Limits, NewConfiguration, seeds};

use super::harvest_bed::{domain, name};
use super::{Bed, anna, on_both_engines};
use crate::{ConfigurationChange, DomainChange, DomainFilter, NewCredential};

on_both_engines! {
    a_new_domain_comes_with_all_it_needs,
    an_import_counts_what_was_there,
    two_imports_of_the_same_names_at_once_make_each_domain_once,
    aliases_follow_the_rules_and_are_reviewed,
    nothing_in_use_is_deleted,
    a_stale_save_is_refused,
    domains_are_found_by_pattern_and_page,
    custom_fields_are_checked,
    a_template_keeps_every_version,
}

async fn a_new_domain_comes_with_all_it_needs(bed: &Bed) {
    bed.stocked(&["a.dk", "xn--bcher-kva.de"]).await;
    let domains = bed.db.domains();
    let got = domains.get(&domain("a.dk")).await.unwrap().unwrap();
    assert_eq!((got.default_configuration.as_str(), got.edition), ("defaultconfig", 1));
    assert_eq!(domains.get(&domain("bücher.de")).await.unwrap().unwrap().readable, "bücher.de");
    let [configuration] = &domains.configurations(&domain("a.dk")).await.unwrap()[..] else { panic!("one") };
    assert!(configuration.default && configuration.best.is_none());
    assert_eq!(configuration.template.as_str(), "default");
    assert_eq!(configuration.limits, Limits { bytes: Limit::of(1_000_000_000), ..Limits::NONE });
    assert_eq!(configuration.seed_lists, [name("defaultseeds")]);
    let lists = domains.seed_lists(&domain("a.dk")).await.unwrap();
    assert_eq!(lists[0].seeds, seeds::default_seeds(&domain("a.dk")));
    assert_eq!(lists[0].active, 4);
}

async fn an_import_counts_what_was_there(bed: &Bed) {
    bed.stocked(&["a.dk"]).await;
    let names = ["a.dk", "b.dk", "b.dk", "192.0.2.1"].map(domain).to_vec();
    let imported = bed.db.domains().import(names, &anna()).await.unwrap();
    // What is given twice was there the second time.
    assert_eq!((imported.created, imported.existing), (2, vec![domain("a.dk"), domain("b.dk")]));
    assert_eq!(bed.db.domains().count().await.unwrap(), 3);
    let counts = bed.db.domains().count_by_suffix().await.unwrap();
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [("dk".to_owned(), 2)]);
    assert_eq!(bed.db.domains().import(Vec::new(), &anna()).await.unwrap().created, 0);
}

async fn two_imports_of_the_same_names_at_once_make_each_domain_once(bed: &Bed) {
    bed.stocked(&[]).await;
    let names: Vec<_> = (0..300).map(|n| domain(&format!("d{n}.dk"))).collect();
    let importing = (0..3).map(|n| {
        let (db, mut names) = (bed.db.clone(), names.clone());
        names.rotate_left(n * 100);
        tokio::spawn(async move { db.domains().import(names, &anna()).await.unwrap().created })
    });
    let mut created = 0;
    for task in importing.collect::<Vec<_>>() {
        created += task.await.unwrap();
    }
    assert_eq!((created, bed.db.domains().count().await.unwrap()), (300, 300));
}

async fn aliases_follow_the_rules_and_are_reviewed(bed: &Bed) {
    bed.stocked(&["a.dk", "b.dk", "c.dk"]).await;
    let domains = bed.db.domains();
    let alias = async |of: &str, target: &str| {
        let change = DomainChange { alias_of: Some(Some(domain(target))), ..DomainChange::default() };
        domains.change(&domain(of), change, None, &anna()).await
    };
    alias("a.dk", "b.dk").await.unwrap();
    for (of, target) in [("c.dk", "c.dk"), ("c.dk", "a.dk"), ("b.dk", "c.dk")] {
        assert_eq!(alias(of, target).await.unwrap_err().code(), "refused", "{of} {target}");
    }
    assert_eq!(alias("a.dk", "nowhere.dk").await.unwrap_err().code(), "not-found");
    // A change of something else keeps it.
    let change = DomainChange { comments: Some("x".to_owned()), ..DomainChange::default() };
    let kept = domains.change(&domain("a.dk"), change, None, &anna()).await.unwrap();
    assert_eq!(kept.alias.unwrap().of, domain("b.dk"));
    let review = domains.aliases(Duration::from_secs(10)).await.unwrap();
    assert!(!review[0].expired && review[0].domain == domain("a.dk"));
    bed.hand.advance(Duration::from_secs(10));
    assert!(domains.aliases(Duration::from_secs(10)).await.unwrap()[0].expired);
    alias("a.dk", "b.dk").await.unwrap();
    assert!(!domains.aliases(Duration::from_secs(10)).await.unwrap()[0].expired, "renewed");
    let change = DomainChange { alias_of: Some(None), ..DomainChange::default() };
    domains.change(&domain("a.dk"), change, None, &anna()).await.unwrap();
    assert!(domains.aliases(Duration::from_secs(10)).await.unwrap().is_empty());
}

async fn nothing_in_use_is_deleted(bed: &Bed) {
    bed.stocked(&["a.dk"]).await;
    let (domains, a) = (bed.db.domains(), domain("a.dk"));
    let in_use = |error: crate::Error, by: &str| {
        assert_eq!(error.code(), "in-use");
        assert!(error.to_string().contains(by), "{error}");
    };
    in_use(domains.delete_seeds(&a, &name("defaultseeds"), &anna()).await.unwrap_err(), "defaultconfig");
    let error = domains.delete_configuration(&a, &name("defaultconfig"), &anna()).await.unwrap_err();
    assert_eq!(error.code(), "refused");
    let login = NewCredential {
        name: name("login"),
        url: "http://a.dk/".to_owned(),
        realm: String::new(),
        username: "u".to_owned(),
        form: None,
        sealed: "sealed".to_owned(),
        comments: String::new(),
    };
    domains.save_credential(&a, login, &anna()).await.unwrap();
    let other = NewConfiguration {
        name: name("other"),
        template: name("front-page"),
        limits: Limits::NONE,
        seed_lists: vec![name("defaultseeds")],
        credentials: vec![name("login")],
        comments: String::new(),
    };
    domains.add_configuration(&a, other.clone(), &anna()).await.unwrap();
    assert_eq!(domains.add_configuration(&a, other, &anna()).await.unwrap_err().code(), "exists");
    in_use(domains.delete_credential(&a, &name("login"), &anna()).await.unwrap_err(), "other");
    bed.selective("h", &[]).await;
    let wanted = vec![(a.clone(), Some(name("other")))];
    bed.db.harvests().add_domains(&name("h"), wanted.clone(), false, &anna()).await.unwrap();
    in_use(domains.delete_configuration(&a, &name("other"), &anna()).await.unwrap_err(), "harvest h");
    in_use(bed.db.schedules().delete(&name("daily"), &anna()).await.unwrap_err(), "harvest h");
    bed.db.harvests().remove_domains(&name("h"), wanted, &anna()).await.unwrap();
    domains.delete_configuration(&a, &name("other"), &anna()).await.unwrap();
    domains.delete_credential(&a, &name("login"), &anna()).await.unwrap();
    // The default can be another one, and only another one's name can change.
    let spare = NewConfiguration {
        name: name("spare"),
        template: name("default"),
        limits: Limits::NONE,
        seed_lists: vec![name("defaultseeds")],
        credentials: Vec::new(),
        comments: String::new(),
    };
    domains.add_configuration(&a, spare, &anna()).await.unwrap();
    let rename = |to: &str| ConfigurationChange { rename: Some(name(to)), ..ConfigurationChange::default() };
    let error = domains
        .change_configuration(&a, &name("defaultconfig"), rename("x"), None, &anna())
        .await
        .unwrap_err();
    assert_eq!(error.code(), "refused");
    domains.change_configuration(&a, &name("spare"), rename("x"), None, &anna()).await.unwrap();
    let change = DomainChange { default_configuration: Some(name("x")), ..DomainChange::default() };
    assert_eq!(domains.change(&a, change, None, &anna()).await.unwrap().default_configuration, name("x"));
    domains.delete_configuration(&a, &name("defaultconfig"), &anna()).await.unwrap();
}

async fn a_stale_save_is_refused(bed: &Bed) {
    bed.stocked(&["a.dk"]).await;
    let (domains, a) = (bed.db.domains(), domain("a.dk"));
    let change = || DomainChange { comments: Some("x".to_owned()), ..DomainChange::default() };
    domains.change(&a, change(), Some(1), &anna()).await.unwrap();
    assert_eq!(domains.change(&a, change(), Some(1), &anna()).await.unwrap_err().code(), "stale");
    let list = name("defaultseeds");
    let seeds = ["http://a.dk/".to_owned()];
    let text = "# mine\nhttp://a.dk/";
    let saved = domains.save_seeds(&a, &list, text, &seeds, "", Some(1), &anna()).await.unwrap();
    assert_eq!((saved.seeds.as_str(), saved.active, saved.edition), (text, 1, 2));
    let stale = domains.save_seeds(&a, &list, text, &seeds, "", Some(1), &anna()).await.unwrap_err();
    assert_eq!(stale.code(), "stale");
    assert_eq!(
        domains.save_seeds(&a, &list, "\0", &[], "", None, &anna()).await.unwrap_err().code(),
        "bad-text"
    );
}

async fn domains_are_found_by_pattern_and_page(bed: &Bed) {
    bed.stocked(&["aa.dk", "ab.dk", "ac.dk", "b.com"]).await;
    let find = async |pattern: &str, after: Option<&str>| {
        let filter = DomainFilter {
            name: Some(pattern.to_owned()),
            after: after.map(domain),
            limit: 2,
            ..DomainFilter::default()
        };
        let found = bed.db.domains().list(&filter).await.unwrap();
        (found.domains.into_iter().map(|domain| domain.name.to_string()).collect::<Vec<_>>(), found.next)
    };
    assert_eq!(
        find("a*.dk", None).await,
        (vec!["aa.dk".to_owned(), "ab.dk".to_owned()], Some(domain("ab.dk")))
    );
    assert_eq!(find("a*.dk", Some("ab.dk")).await, (vec!["ac.dk".to_owned()], None));
    assert_eq!(find("?.com", None).await, (vec!["b.com".to_owned()], None));
    assert_eq!(find("%", None).await.0, Vec::<String>::new());
}

async fn custom_fields_are_checked(bed: &Bed) {
    bed.stocked(&["a.dk"]).await;
    let field = CustomField {
        noun: FieldNoun::Domain,
        name: name("owner"),
        kind: FieldKind::Text,
        mandatory: true,
        position: 1,
        options: Vec::new(),
    };
    bed.db.custom_fields().save(field, &anna()).await.unwrap();
    let change = |key: &str, value: &str| DomainChange {
        fields: Some([(key.to_owned(), value.to_owned())].into()),
        ..DomainChange::default()
    };
    let (domains, a) = (bed.db.domains(), domain("a.dk"));
    assert_eq!(domains.change(&a, change("x", "y"), None, &anna()).await.unwrap_err().code(), "refused");
    let saved = domains.change(&a, change("owner", "KB"), None, &anna()).await.unwrap();
    assert_eq!(saved.fields["owner"], "KB");
    bed.db.custom_fields().delete(FieldNoun::Domain, &name("owner"), &anna()).await.unwrap();
    assert!(bed.db.custom_fields().list(FieldNoun::Domain).await.unwrap().is_empty());
}

async fn a_template_keeps_every_version(bed: &Bed) {
    bed.stocked(&[]).await;
    let templates = bed.db.templates();
    let first = templates.get(&name("default"), None).await.unwrap().unwrap();
    let second = templates.put(&name("default"), "other", "", &anna()).await.unwrap();
    assert_eq!((first.version, second.version), (1, 2));
    assert_eq!(
        templates.put(&name("default"), "other", "", &anna()).await.unwrap().version,
        2,
        "the same text"
    );
    assert_eq!(templates.get(&name("default"), Some(1)).await.unwrap().unwrap().text, first.text);
    assert!(!templates.set_active(&name("path"), false, &anna()).await.unwrap().active);
    bed.stocked(&[]).await;
    assert_eq!(
        templates.get(&name("default"), None).await.unwrap().unwrap().text,
        "other",
        "a person's text stays"
    );
    let newer = |called: &str| (name(called), "newer".to_owned());
    templates.ship(["default", "front-page", "path"].map(newer).to_vec()).await.unwrap();
    for (called, text, version) in [("default", "other", 2), ("front-page", "newer", 2)] {
        let known = templates.get(&name(called), None).await.unwrap().unwrap();
        assert_eq!((known.text.as_str(), known.version), (text, version), "{called}");
    }
    let path = templates.get(&name("path"), None).await.unwrap().unwrap();
    assert!(!path.active && path.version == 1, "what nobody is offered is left alone");
}
