//! Numbers: short, because people type them.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::harvest::job::number;

number!(RepositoryId, "repository");
number!(OaiJobId, "harvest of metadata");
number!(RecurringId, "recurring job");
number!(HistoryId, "line of history");
