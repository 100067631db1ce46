//! Logins of a domain: what people say about them, without their secrets.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::name::Name;
use super::trap;

/// A login as it is shown: without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CredentialShown {
    pub name: Name,
    /// Where a form is sent; otherwise any page of the site.
    pub url: String,
    pub realm: String,
    pub username: String,
    /// Without one, user and secret are given when the server asks for them by HTTP.
    #[serde(default)]
    pub form: Option<LoginForm>,
    pub comments: String,
    #[schemars(with = "String")]
    pub changed_at: Timestamp,
}

/// How a form is filled in that is sent once, before the first page of a domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoginForm {
    /// The name of the field for the user.
    pub user_field: String,
    /// The name of the field for the secret.
    pub secret_field: String,
    /// Further fields with their values, such as `remember` and `1`.
    #[serde(default)]
    pub fields: Vec<(String, String)>,
    /// The page the form stands on, where servers set a cookie there first.
    #[serde(default)]
    pub page_url: Option<String>,
    /// A cookie that is set only for who is let in.
    #[serde(default)]
    pub sets_cookie: Option<String>,
    /// A pattern that only the page of who is let in matches.
    #[serde(default)]
    pub page_matches: Option<String>,
    /// A pattern that only the page of who is not let in matches.
    #[serde(default)]
    pub page_lacks: Option<String>,
}

impl LoginForm {
    /// Whether a crawler can make use of it, sent to `url`.
    pub fn check(&self, url: &str) -> Result<(), String> {
        for address in std::iter::once(url).chain(self.page_url.as_deref()) {
            if !["http://", "https://"].iter().any(|scheme| address.starts_with(scheme)) {
                return Err(format!("a form is sent to a web address, and \"{address}\" is none"));
            }
        }
        if self.user_field.is_empty() || self.secret_field.is_empty() {
            return Err("a form needs the names of its fields for user and secret".to_owned());
        }
        for pattern in self.page_matches.iter().chain(&self.page_lacks) {
            trap::compiles(pattern).map_err(|reason| format!("\"{pattern}\" is no pattern: {reason}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_that_no_crawler_could_send_are_refused() {
        let good = LoginForm {
            user_field: "user".to_owned(),
            secret_field: "pass".to_owned(),
            fields: vec![("remember".to_owned(), "1".to_owned())],
            page_url: Some("https://a.dk/login".to_owned()),
            sets_cookie: None,
            page_matches: Some("welcome, .+".to_owned()),
            page_lacks: None,
        };
        assert_eq!(good.check("https://a.dk/do-login"), Ok(()));
        let wrong = |change: fn(&mut LoginForm)| {
            let mut form = good.clone();
            change(&mut form);
            form.check("https://a.dk/do-login").unwrap_err()
        };
        assert!(good.check("ftp://a.dk/").unwrap_err().contains("ftp://a.dk/"));
        assert!(wrong(|form| form.page_url = Some("login".to_owned())).contains("\"login\" is none"));
        assert!(wrong(|form| form.user_field.clear()).contains("names of its fields"));
        assert!(wrong(|form| form.page_lacks = Some("(".to_owned())).contains("no pattern"));
    }
}
