//! What the command tree tells about itself: shell completions and the manual page.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::Exit;

pub(super) fn completions(shell: Shell) -> Exit {
    clap_complete::generate(shell, &mut Cli::command(), "grange", &mut crate::output::stdout());
    Exit::Ok
}

/// One page for the program and all its commands.
pub(super) fn man() -> anyhow::Result<Exit> {
    let mut command = Cli::command().help_template("{about}");
    command.build();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    for sub in command.get_subcommands() {
        let mut part = Vec::new();
        let man = clap_mangen::Man::new(sub.clone());
        writeln!(part, ".SH \"GRANGE {}\"", sub.get_name().to_uppercase())?;
        man.render_description_section(&mut part)?;
        man.render_synopsis_section(&mut part)?;
        man.render_options_section(&mut part)?;
        page.extend(part);
    }
    crate::output::stdout().write_all(&page)?;
    Ok(Exit::Ok)
}
