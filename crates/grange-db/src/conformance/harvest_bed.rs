//! What the cases of harvests begin with.

use std::collections::BTreeMap;

use grange_model::harvest::{DomainName, HarvestDefinition, HarvestKind, Limits, Name, Schedule};

use super::{Bed, LONG, anna};
use crate::{Candidate, Due, Member, NewHarvest, NewJob, RunPlan};

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn domain(text: &str) -> DomainName {
    text.parse().unwrap()
}

impl Bed {
    /// What comes with Grange, and these domains.
    pub(crate) async fn stocked(&self, domains: &[&str]) {
        let template = |called: &str| (name(called), format!("name = \"{called}\"\n"));
        let shipped = ["default", "front-page", "path"].map(template).to_vec();
        self.db.templates().ship(shipped).await.unwrap();
        self.db.schedules().ship(Schedule::shipped().to_vec()).await.unwrap();
        let names = domains.iter().map(|text| domain(text)).collect();
        self.db.domains().import(names, &anna()).await.unwrap();
    }

    pub(crate) async fn harvest(&self, called: &str, kind: HarvestKind) -> HarvestDefinition {
        let new = NewHarvest {
            name: name(called),
            kind,
            comments: String::new(),
            audience: String::new(),
            schedule: (kind == HarvestKind::Selective).then(|| name("daily")),
            channel: None,
            limits: Limits::NONE,
            continues: None,
            traps: Vec::new(),
            fields: BTreeMap::new(),
        };
        self.db.harvests().create(new, &anna()).await.unwrap()
    }

    /// A selective harvest of these domains, in service.
    pub(crate) async fn selective(&self, called: &str, domains: &[&str]) -> HarvestDefinition {
        self.harvest(called, HarvestKind::Selective).await;
        let wanted = domains.iter().map(|text| (domain(text), None)).collect();
        self.db.harvests().add_domains(&name(called), wanted, true, &anna()).await.unwrap();
        self.db.harvests().set_active(&name(called), true, None, &anna()).await.unwrap()
    }

    pub(crate) async fn due(&self, kind: HarvestKind) -> Option<Due> {
        self.db.planner().claim(kind, "planner", LONG, None).await.unwrap()
    }

    /// Plans what is due of a kind as one job, and gives the number of jobs.
    pub(crate) async fn plan(&self, kind: HarvestKind) -> u64 {
        let due = self.due(kind).await.unwrap();
        self.draft(&due).await;
        let next_at = due.schedule.as_ref().and_then(|schedule| {
            schedule.next(due.due_at, due.harvest.runs + 1, self.clock.now()).unwrap().at
        });
        self.db.planner().commit(&due, RunPlan { next_at, ..RunPlan::default() }).await.unwrap()
    }

    pub(crate) async fn draft(&self, due: &Due) {
        let planner = self.db.planner();
        let all = planner.candidates(&due.harvest, &[], LONG, 0, 1000).await.unwrap();
        let Some(first) = all.first() else { return };
        let job = NewJob {
            template: first.template,
            limits: due.harvest.limits,
            expected_objects: 7,
            configurations: all.len() as u64,
        };
        let job = planner.draft(due, vec![job]).await.unwrap()[0];
        let member = |one: &Candidate| Member { configuration: one.configuration, job, expected_objects: 7 };
        planner.fill(due, all.iter().map(member).collect()).await.unwrap();
    }
}
