//! `grange settings …`

use std::io::Write;

use grange_node::settings::{Known, Settings, print};

use crate::cli::{Common, SettingsCommand};
use crate::exit::{Exit, UsageError};
use crate::{context, output};

pub(super) fn run(common: &Common, command: &SettingsCommand) -> anyhow::Result<Exit> {
    let known = Known::of::<Settings>();
    let mut out = output::stdout();
    match command {
        SettingsCommand::Example => write!(out, "{}", print::example(&known))?,
        SettingsCommand::Reference => write!(out, "{}", print::reference(&known))?,
        SettingsCommand::Show => {
            let loaded = context::load(common)?;
            drop(out);
            if common.json {
                output::json(&print::shown_values(&loaded.settings))?;
            } else {
                out!("{}", print::show(&loaded, &known));
            }
        }
        SettingsCommand::Check => {
            let loaded = context::load(common)?;
            let set = loaded.origins.keys().filter(|path| known.key(path).is_some()).count();
            writeln!(out, "The settings are right: {set} set, {} by default.", known.keys.len() - set)?;
        }
        SettingsCommand::Explain { path } => {
            let loaded = context::load(common)?;
            if let Some(section) = known.sections.iter().find(|section| section.path == *path) {
                write!(out, "{}", print::explain_section(&known, section))?;
                return Ok(Exit::Ok);
            }
            let Some(key) = known.key(path) else {
                let meant = known.nearest(path).map(|near| format!("; did you mean \"{near}\"?"));
                let text = format!("there is no setting \"{path}\"{}", meant.unwrap_or_default());
                return Err(UsageError(text).into());
            };
            write!(out, "{}", print::explain(&loaded, key, path))?;
        }
    }
    Ok(Exit::Ok)
}
