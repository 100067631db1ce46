//! A store that refuses a request because of its time says so in XML: `<Code>RequestTimeTooSkewed</Code>`, as Amazon does
//! from a quarter of an hour on, mostly with `<ServerTime>`.

/// Whether an answer, as the client library words it, refuses the time of the request.
pub(super) fn refuses_time(answer: &str) -> bool {
    answer.contains("RequestTimeTooSkewed")
}

/// The store's own time in such an answer.
pub(super) fn server_time(answer: &str) -> Option<String> {
    let (_, rest) = answer.split_once("<ServerTime>")?;
    let (time, _) = rest.split_once("</ServerTime>")?;
    Some(time.trim().to_owned()).filter(|time| !time.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_store_is_found_where_it_is_given() {
        let amazon = "Client error with status 403 Forbidden: <?xml version=\"1.0\"?><Error><Code>RequestTimeTooSkewed</Code>\
            <Message>The difference between the request time and the current time is too large.</Message>\
            <RequestTime>20261118T010000Z</RequestTime><ServerTime>2026-11-18T00:00:00Z</ServerTime></Error>";
        assert!(refuses_time(amazon));
        assert_eq!(server_time(amazon).as_deref(), Some("2026-11-18T00:00:00Z"));
        let plain = "<Error><Code>RequestTimeTooSkewed</Code></Error>";
        assert!(refuses_time(plain) && server_time(plain).is_none());
        assert!(!refuses_time("<Error><Code>AccessDenied</Code></Error>"));
    }
}
