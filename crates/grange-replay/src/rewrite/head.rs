//! What is put at the start of every replayed page: wombat, and what it needs to know.

use std::fmt::Write as _;

use super::assets::{STATIC_PREFIX, has_wombat};
use super::modifier::Modifier;
use super::place::Place;
use super::script::literal;
use super::transform::Options;

/// Name of the frame that shows the capture: where links that ask for a new or the topmost window lead.
pub const TARGET_FRAME: &str = "grange_replay";

/// HTML for the start of the head, ASCII only, thus right in every charset. The scripts take themselves out of the
/// page again: what the page's own scripts count and find is what they found when it was live. `is_xml`: well-formed, for
/// XHTML.
pub(super) fn insert(place: &Place, options: &Options, is_xml: bool) -> String {
    let mut out = String::new();
    if has_wombat() {
        let [configuration, start] = wombat(place, options);
        let (tag, loaded) = if is_xml {
            let tag = "<script xmlns=\"http://www.w3.org/1999/xhtml\" data-grange=\"\"";
            (tag, [in_xml(&configuration), in_xml(&start)])
        } else {
            ("<script data-grange", [configuration, start])
        };
        let [configuration, start] = loaded;
        let _ = write!(
            out,
            "{tag}>{configuration}</script>{tag} src=\"{STATIC_PREFIX}wombat.js\"></script>{tag}>{start}</script>"
        );
    }
    out.push_str(&options.head);
    out
}

/// A script as text of XML.
fn in_xml(script: &str) -> String {
    script.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The script in front of wombat, and the one behind it.
fn wombat(place: &Place, options: &Options) -> [String; 2] {
    let url = place.url();
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let modifier = if place.modifier() == Modifier::Top { Modifier::Main } else { place.modifier() };
    let request = options.request_timestamp.as_deref().unwrap_or(place.timestamp());
    // `self.origin` is right behind any proxy and in frames without an address of their own.
    let mut configuration = format!(
        "(function(){{\
         var o=self.origin&&self.origin!==\"null\"?self.origin:{origin};\
         var inFrame=false;try{{inFrame=parent!==self&&!!(parent.wbinfo&&parent.wbinfo.is_framed)}}catch(e){{}}\
         self.wbinfo={{url:{url},timestamp:{timestamp},request_ts:{request},prefix:o+{prefix},mod:{modifier},\
         top_url:o+{top},is_framed:{framed}||inFrame,is_live:false,coll:{collection},proxy_magic:\"\",\
         static_prefix:o+\"{STATIC_PREFIX}\",enable_auto_fetch:false,target_frame:{target},\
         wombat_ts:{timestamp},wombat_sec:\"{seconds}\",wombat_scheme:{scheme},wombat_host:{host},wombat_opts:{{}}}};",
        origin = literal(place.origin()),
        url = literal(url),
        timestamp = literal(place.timestamp()),
        request = literal(request),
        prefix = literal(place.prefix()),
        modifier = literal(modifier.as_str()),
        top = literal(&place.path(url, Modifier::Top)),
        framed = options.framed,
        collection = literal(place.prefix().trim_matches('/')),
        target = if options.framed { literal(TARGET_FRAME) } else { "undefined".to_owned() },
        seconds = seconds(place.timestamp()),
        scheme = literal(scheme),
        host = literal(host),
    );
    if options.framed {
        // Opened without the frame that holds the banner, for example in a new tab.
        configuration.push_str(
            "if(self===top&&location.protocol!==\"about:\")location.replace(wbinfo.top_url+location.hash);",
        );
    }
    configuration.push_str("})()");
    let start = "if(self._WBWombatInit)self._WBWombatInit(wbinfo);\
         var _____WB$wombat$assign$function_____=function(name){return(self._wb_wombat&&\
         self._wb_wombat.local_init&&self._wb_wombat.local_init(name))||self[name]};\
         document.querySelectorAll(\"script[data-grange]\").forEach(function(own){own.remove()})";
    [configuration, start.to_owned()]
}

/// Put in front of a worker's script: wombat's part for workers.
pub(super) fn worker(place: &Place, is_module: bool) -> String {
    if !has_wombat() {
        return String::new();
    }
    let origin = literal(place.origin());
    let (prefix, url) = (literal(place.prefix()), literal(place.url()));
    let start = literal(&format!("{}{}wkrf_/", place.prefix(), place.timestamp()));
    if is_module {
        // Imports run in their order, before anything the worker itself imports.
        return format!(
            "import \"{STATIC_PREFIX}wombatWorkers.js\";\
             import \"{STATIC_PREFIX}grange-worker.js?prefix={}&time={}&url={}\";\n",
            query(place.prefix()),
            query(place.timestamp()),
            query(place.url()),
        );
    }
    format!(
        "(function(){{var o=self.origin&&self.origin!==\"null\"?self.origin:{origin};\
         self.importScripts(o+\"{STATIC_PREFIX}wombatWorkers.js\");\
         new WBWombat({{prefix:o+{prefix},prefixMod:o+{start},originalURL:{url}}});\
         self._WB_wombat_location=new URL({url})}})();\n"
    )
}

fn query(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Seconds since 1970 of 14 digits; what they do not say is taken for the first of its kind.
fn seconds(timestamp: &str) -> i64 {
    let part = |from: usize, to: usize, least: i64| -> i64 {
        timestamp.get(from..to).and_then(|digits| digits.parse().ok()).unwrap_or(least).max(least)
    };
    let (year, month, day) = (part(0, 4, 1970), part(4, 6, 1), part(6, 8, 1));
    // Days from civil: years begin in March, so that the leap day is the last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    days * 86_400 + part(8, 10, 0) * 3600 + part(10, 12, 0) * 60 + part(12, 14, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_those_of_the_calendar() {
        let cases = [
            ("19700101000000", 0),
            ("20000229235959", 951_868_799),
            ("20240301000000", 1_709_251_200),
            ("2014", 1_388_534_400),
            ("", 0),
        ];
        for (timestamp, expected) in cases {
            assert_eq!(seconds(timestamp), expected, "{timestamp}");
        }
    }

    #[test]
    fn an_address_cannot_end_the_script() {
        let url = "http://a/</script><script>alert(1)";
        let place = Place::new("http://r", "/c/", "20200102030405", Modifier::Main, url);
        let insert = insert(&place, &Options::default(), false);
        assert!(!insert.contains("alert(1)\"") || !insert.contains("</script><script>alert"), "{insert}");
    }
}
