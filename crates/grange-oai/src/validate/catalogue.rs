//! The schemas at hand, by file name and by namespace.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use xsd_schema::{
    EmbeddedLoader, LoaderChain, LocationRequest, ResolverConfig, SchemaError, SchemaLoader, SchemaResolver,
    SchemaResult, SchemaSet, SchemaSetBuilder, XsdVersion,
};

/// Where the loader pretends schemas are.
const SCHEME: &str = "catalogue:///";

/// Bytes of one schema file. The largest in use (of METS, MARC, EAD) have a few hundred thousand.
const SCHEMA_BYTES_MAX: u64 = 8 << 20;

const SHIPPED: [(&str, &str); 2] = [
    ("oai_dc.xsd", include_str!("schemas/oai_dc.xsd")),
    ("simpledc20021212.xsd", include_str!("schemas/simpledc20021212.xsd")),
];

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Schema {
    namespace: String,
    text: String,
}

/// Schemas by file name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Catalogue(BTreeMap<String, Schema>);

impl Catalogue {
    pub(super) fn shipped() -> Catalogue {
        let schemas = SHIPPED.iter().map(|(name, text)| {
            let schema =
                Schema { namespace: target_namespace(text).unwrap_or_default(), text: (*text).to_owned() };
            ((*name).to_owned(), schema)
        });
        Catalogue(schemas.collect())
    }

    /// Adds all `*.xsd` of a folder. A shipped schema gives way to one of the same namespace or name.
    pub(super) fn with_folder(mut self, folder: &Path) -> io::Result<Catalogue> {
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("xsd")) {
                continue;
            }
            let told = |reason: String| io::Error::other(format!("{}: {reason}", path.display()));
            if std::fs::metadata(&path)?.len() > SCHEMA_BYTES_MAX {
                return Err(told(format!("larger than {SCHEMA_BYTES_MAX} bytes")));
            }
            let text = std::fs::read_to_string(&path).map_err(|error| told(error.to_string()))?;
            let namespace = target_namespace(&text).map_err(told)?;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.insert(name, Schema { namespace, text });
        }
        self.0.retain(|_, shipped| !found.values().any(|own| own.namespace == shipped.namespace));
        self.0.extend(found);
        Ok(self)
    }

    pub(super) fn namespaces(&self) -> Vec<String> {
        self.0.values().map(|schema| schema.namespace.clone()).collect()
    }

    /// All schemas, compiled together.
    pub(super) fn compile(&self) -> Result<SchemaSet, String> {
        let mut loader = LoaderChain::new();
        loader.add(Box::new(EmbeddedLoader::new()));
        loader.add(Box::new(Loader(self.clone())));
        let mut resolver =
            SchemaResolver::with_config_and_loader(ResolverConfig::default(), Box::new(loader));
        let catalogue = self.clone();
        resolver.set_location_rewriter(move |request: &LocationRequest<'_>, _: &SchemaResolver| {
            Some(catalogue.locate(request.location, request.namespace))
        });
        let mut builder = SchemaSetBuilder::with_resolver(resolver, XsdVersion::V1_0);
        for name in self.0.keys() {
            builder.try_add(name).map_err(|error| format!("{name}: {error}"))?;
        }
        let compiled = builder.compile().map_err(|error| error.to_string())?;
        if let Some(failure) = compiled.directive_failures().first() {
            let wanted = failure.schema_location().or(failure.namespace()).unwrap_or("a schema");
            return Err(format!("{wanted} is needed but not at hand; put it into the folder of schemas"));
        }
        Ok(compiled.into_schema_set())
    }

    /// Where the schema is that a directive means: by its namespace, else by its file name.
    fn locate(&self, location: &str, namespace: Option<&str>) -> String {
        let file = location.rsplit('/').next().unwrap_or(location);
        if !self.0.contains_key(file) {
            match namespace {
                Some("http://www.w3.org/XML/1998/namespace") => return "embedded://xml.xsd".to_owned(),
                Some("http://www.w3.org/1999/xlink") if !self.has(namespace) => {
                    return "embedded://xlink.xsd".to_owned();
                }
                _ => {}
            }
        }
        let by_namespace = namespace
            .and_then(|namespace| self.0.iter().find(|(_, schema)| schema.namespace == namespace))
            .map(|(name, _)| name.as_str());
        let named =
            self.0.get(file).filter(|schema| namespace.is_none_or(|wanted| wanted == schema.namespace));
        let name = if named.is_some() { file } else { by_namespace.unwrap_or(file) };
        format!("{SCHEME}{name}")
    }

    fn has(&self, namespace: Option<&str>) -> bool {
        self.0.values().any(|schema| Some(schema.namespace.as_str()) == namespace)
    }
}

fn target_namespace(text: &str) -> Result<String, String> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
    let document =
        roxmltree::Document::parse_with_options(text, options).map_err(|error| error.to_string())?;
    let root = document.root_element();
    if root.tag_name().name() != "schema" {
        return Err(format!("the root element is {}, not schema", root.tag_name().name()));
    }
    Ok(root.attribute("targetNamespace").unwrap_or_default().to_owned())
}

#[derive(Debug)]
struct Loader(Catalogue);

impl SchemaLoader for Loader {
    fn load(&self, location: &str) -> SchemaResult<String> {
        let name = location.strip_prefix(SCHEME).unwrap_or(location);
        match self.0.0.get(name) {
            Some(schema) => Ok(schema.text.clone()),
            None => Err(SchemaError::resolution(format!("{name} is not at hand"))),
        }
    }

    fn can_load(&self, location: &str) -> bool {
        location.starts_with(SCHEME)
    }
}
