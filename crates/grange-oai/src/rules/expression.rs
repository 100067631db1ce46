//! XPath 1.0 expressions.
//!
//! Two engines, by measurement (both pure Rust): uppsala is five times as fast but does not read `(…)[n]` and has no
//! namespace axis; sxd is complete. An expression goes to the first unless it cannot take it.

use uppsala::XPathEvaluator;

use super::lexer;
use super::{BadRules, Document, Found, Namespaces, RuleError};

/// Nodes one expression may visit in one record, so that a hostile record cannot hold up a harvest.
const VISITS_MAX: usize = 10_000_000;

enum Engine {
    Fast(Box<XPathEvaluator>),
    Complete(Vec<(String, String)>),
}

/// An expression that was found good.
pub(crate) struct Expression {
    xpath: String,
    engine: Engine,
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Expression").field(&self.xpath).finish()
    }
}

impl Expression {
    pub(crate) fn parse(xpath: &str, namespaces: &Namespaces, place: &str) -> Result<Expression, BadRules> {
        let wrong = |reason: String| BadRules::new(place, format!("{xpath} is not a usable XPath: {reason}"));
        if xpath.trim().is_empty() {
            return Err(BadRules::new(place, "the XPath is empty"));
        }
        let uses = lexer::check(xpath, namespaces).map_err(wrong)?;
        let mut fast = XPathEvaluator::new().with_max_node_visits(VISITS_MAX);
        for (prefix, uri) in namespaces {
            fast.add_namespace(prefix, uri);
        }
        let context: Vec<_> = namespaces.iter().map(|(prefix, uri)| (prefix.clone(), uri.clone())).collect();
        // Any document shows whether an engine can read an expression.
        let probe = Document::parse("<a/>").map_err(|error| wrong(error.to_string()))?;
        let engine = match probe.evaluate(&fast, xpath) {
            Ok(_) if !uses.namespace_axis => Engine::Fast(Box::new(fast)),
            _ => {
                probe.evaluate_completely(&context, xpath).map_err(wrong)?;
                Engine::Complete(context)
            }
        };
        Ok(Expression { xpath: xpath.to_owned(), engine })
    }

    /// What it gives on a record: each node of a set, or the one value.
    pub(crate) fn values(&self, document: &Document<'_>) -> Result<Vec<Found>, RuleError> {
        let values = match &self.engine {
            Engine::Fast(evaluator) => document.evaluate(evaluator, &self.xpath),
            Engine::Complete(context) => document.evaluate_completely(context, &self.xpath),
        };
        values.map_err(|reason| RuleError::XPath { xpath: self.xpath.clone(), reason })
    }
}
