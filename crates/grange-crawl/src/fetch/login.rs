//! Log-in by a form: what is to be sent, and how it is told that it worked. The cookies do the rest.

use regex::bytes::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;
use url::form_urlencoded::Serializer;

use super::fetched::Fetched;
use super::request::{Method, Request};
use super::settings::BadSetting;
use crate::candidate::without_user_info;

/// How much of the answer the success check looks at.
const CHECKED_BYTES_MAX: u64 = 1 << 20;

/// A form that logs a crawl in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FormLogin {
    /// Where the form is sent.
    pub login_url: String,
    #[serde(default)]
    pub method: FormMethod,
    /// The fields in their order, name and value.
    pub fields: Vec<(String, String)>,
    /// The page the form stands on; asked for first where the server sets a cookie there. Sent as `Referer`.
    #[serde(default)]
    pub page_url: Option<String>,
    #[serde(default)]
    pub success: SuccessCheck,
}

/// Without the values: one of them is the password.
impl std::fmt::Debug for FormLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.fields.iter().map(|(name, _)| name).collect();
        f.debug_struct("FormLogin")
            .field("login_url", &self.login_url)
            .field("fields", &names)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FormMethod {
    Get,
    #[default]
    Post,
}

/// What must hold of the answer. What is left out holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SuccessCheck {
    /// The statuses of success. Empty means 200 to 399.
    pub statuses: Vec<u16>,
    /// A cookie of this name is set.
    pub sets_cookie: Option<String>,
    /// The page holds a match of this pattern.
    pub page_matches: Option<String>,
    /// The page holds no match of this pattern, such as `wrong password`.
    pub page_lacks: Option<String>,
}

impl FormLogin {
    /// The request that logs in.
    pub fn request(&self) -> Result<Request, BadSetting> {
        let mut url = Url::parse(&self.login_url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| {
                // The reason is written to alerts.log.
                let url = without_user_info(&self.login_url);
                BadSetting::new("login_url", format!("{url:?} is not a web address"))
            })?;
        let form = Serializer::new(String::new()).extend_pairs(&self.fields).finish();
        let mut request = match self.method {
            FormMethod::Get => {
                url.set_query(Some(&form));
                Request::get(url)
            }
            FormMethod::Post => {
                let content_type = "application/x-www-form-urlencoded".to_owned();
                Request {
                    method: Method::Post { content_type, body: form.into_bytes() },
                    ..Request::get(url)
                }
            }
        };
        request.referer.clone_from(&self.page_url);
        request.is_secret = true;
        Ok(request)
    }

    /// Whether the patterns can be used; asked before a crawl begins.
    pub fn check(&self) -> Result<(), BadSetting> {
        self.request()?;
        let success = &self.success;
        for (field, pattern) in [("page_matches", &success.page_matches), ("page_lacks", &success.page_lacks)]
        {
            if let Some(pattern) = pattern {
                Regex::new(pattern).map_err(|error| BadSetting::new(field, error.to_string()))?;
            }
        }
        Ok(())
    }

    /// Whether the answer to [`FormLogin::request`] says that we are in; otherwise what is missing.
    pub fn verdict(&self, answer: &mut Fetched) -> Result<(), String> {
        let check = &self.success;
        let status = answer.status;
        let good = match status.http() {
            Some(code) if check.statuses.is_empty() => (200..400).contains(&code),
            Some(code) => check.statuses.contains(&code),
            None => false,
        };
        if !good {
            return Err(format!("the status is {status}"));
        }
        if let Some(name) = &check.sets_cookie {
            let set = answer.http.as_ref().is_some_and(|head| {
                head.all("Set-Cookie").any(|value| {
                    value
                        .split(|&b| b == b'=')
                        .next()
                        .is_some_and(|found| found.trim_ascii() == name.as_bytes())
                })
            });
            if !set {
                return Err(format!("no cookie {name} was set"));
            }
        }
        if check.page_matches.is_none() && check.page_lacks.is_none() {
            return Ok(());
        }
        let page = answer.content_bytes(CHECKED_BYTES_MAX).map_err(|error| error.to_string())?;
        let finds = |pattern: &str| Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(&page));
        match (&check.page_matches, &check.page_lacks) {
            (Some(pattern), _) if !finds(pattern) => Err(format!("the page holds nothing like {pattern}")),
            (_, Some(pattern)) if finds(pattern) => Err(format!("the page holds {pattern}")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_become_requests() {
        let mut login = FormLogin {
            login_url: "https://example.org/in?x=1".to_owned(),
            method: FormMethod::Post,
            fields: vec![("user".to_owned(), "a b".to_owned()), ("pass".to_owned(), "ä&=".to_owned())],
            page_url: Some("https://example.org/".to_owned()),
            success: SuccessCheck::default(),
        };
        let request = login.request().unwrap();
        assert_eq!(
            request.method,
            Method::Post {
                content_type: "application/x-www-form-urlencoded".to_owned(),
                body: b"user=a+b&pass=%C3%A4%26%3D".to_vec()
            }
        );
        assert_eq!(request.referer.as_deref(), Some("https://example.org/"));
        assert!(!format!("{login:?}").contains("a b"), "values are not for logs");
        login.method = FormMethod::Get;
        assert_eq!(
            login.request().unwrap().url.as_str(),
            "https://example.org/in?user=a+b&pass=%C3%A4%26%3D"
        );
        login.success.page_matches = Some("(".to_owned());
        assert_eq!(login.check().unwrap_err().field, "page_matches");
        login.login_url = "nowhere".to_owned();
        assert_eq!(login.check().unwrap_err().field, "login_url");
    }
}
