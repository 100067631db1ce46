//! Import maps: which address a bare name of a module stands for.

use serde_json::{Map, Value};

use super::modifier::Modifier;
use super::place::Place;
use super::script::specifier;
use super::work;

/// The map with its addresses rewritten; `None` for text that is no import map.
pub(super) fn rewrite(text: &str, place: &Place) -> Option<String> {
    work::spend(text.len());
    let Ok(Value::Object(mut map)) = serde_json::from_str(text) else { return None };
    if let Some(Value::Object(imports)) = map.get_mut("imports") {
        *imports = addresses(std::mem::take(imports), place);
    }
    if let Some(Value::Object(scopes)) = map.get_mut("scopes") {
        *scopes = std::mem::take(scopes)
            .into_iter()
            .map(|(scope, imports)| {
                let scope = place.changed_fully(&scope, Modifier::Module).unwrap_or(scope);
                let imports = match imports {
                    Value::Object(imports) => Value::Object(addresses(imports, place)),
                    other => other,
                };
                (scope, imports)
            })
            .collect();
    }
    // Digests are those of the modules before they were rewritten.
    map.remove("integrity");
    // The text stands in a script element, which a `</script>` would end.
    Some(Value::Object(map).to_string().replace('<', "\\u003c"))
}

fn addresses(imports: Map<String, Value>, place: &Place) -> Map<String, Value> {
    imports
        .into_iter()
        .map(|(name, address)| {
            let name = specifier(&name, place).unwrap_or(name);
            let address = match address {
                Value::String(address) => Value::String(specifier(&address, place).unwrap_or(address)),
                other => other,
            };
            (name, address)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_map_lead_into_the_archive() {
        let place = Place::new("", "/c/", "20200102030405", Modifier::Main, "https://example.org/a/page");
        let map = r#"{"imports":{"x":"./x.js","lib/":"/lib/","https://cdn.org/y.js":"https://z.org/y.js","none":null},
            "scopes":{"/s/":{"x":"/s/x.js"}},"integrity":{"./x.js":"sha384-x"}}"#;
        let p = "/c/20200102030405esm_/https://";
        let expected = format!(
            "{{\"imports\":{{\"x\":\"{p}example.org/a/x.js\",\"lib/\":\"{p}example.org/lib/\",\
             \"{p}cdn.org/y.js\":\"{p}z.org/y.js\",\"none\":null}},\
             \"scopes\":{{\"{p}example.org/s/\":{{\"x\":\"{p}example.org/s/x.js\"}}}}}}"
        );
        assert_eq!(rewrite(map, &place), Some(expected));
        assert_eq!(rewrite("no map", &place), None);
        assert_eq!(rewrite("[]", &place), None);
    }
}
