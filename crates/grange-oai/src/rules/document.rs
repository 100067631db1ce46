//! One record as rules see it: parsed once, looked at by every expression.

use std::cell::OnceCell;

use uppsala::xpath::XPathValue;
use uppsala::{NodeId, XPathEvaluator};

use super::RuleError;

/// Elements inside elements; the reader of pages has the same limit.
const DEPTH_MAX: u32 = 256;

/// A record's metadata, parsed.
pub struct Document<'a> {
    pub(crate) tree: uppsala::Document<'a>,
    pub(crate) xml: &'a str,
    /// The same for the other engine, made when an expression needs it.
    other: OnceCell<Result<sxd_document::Package, String>>,
}

impl std::fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Document").field("xml", &self.xml).finish_non_exhaustive()
    }
}

/// A value an expression gave.
#[derive(Debug, PartialEq)]
pub(crate) struct Found {
    /// As text.
    pub(crate) text: String,
    /// The element it is, or belongs to; `None` for computed values.
    pub(crate) element: Option<NodeId>,
}

impl<'a> Document<'a> {
    /// Parses a record. Strict: what is not well-formed with its namespaces is refused.
    pub fn parse(xml: &'a str) -> Result<Document<'a>, RuleError> {
        let parser = uppsala::Parser::new().with_max_depth(DEPTH_MAX).with_forbid_dtd(true);
        let mut tree = parser.parse(xml).map_err(|error| RuleError::NotWellFormed(error.to_string()))?;
        tree.prepare_xpath();
        Ok(Document { tree, xml, other: OnceCell::new() })
    }

    /// What an expression gives here, by the fast engine.
    pub(crate) fn evaluate(&self, evaluator: &XPathEvaluator, xpath: &str) -> Result<Vec<Found>, String> {
        let value =
            evaluator.evaluate(&self.tree, self.tree.root(), xpath).map_err(|error| error.to_string())?;
        let XPathValue::NodeSet(nodes) = value else {
            return Ok(vec![Found { text: value.to_string_value(&self.tree), element: None }]);
        };
        let found = nodes.into_iter().map(|node| Found {
            element: self.element_of(node),
            text: XPathValue::NodeSet(vec![node]).to_string_value(&self.tree),
        });
        Ok(found.collect())
    }

    /// What an expression gives here, by the complete engine.
    pub(crate) fn evaluate_completely(
        &self,
        context: &[(String, String)],
        xpath: &str,
    ) -> Result<Vec<Found>, String> {
        let package = self
            .other
            .get_or_init(|| sxd_document::parser::parse(self.xml).map_err(|error| error.to_string()));
        let package = package.as_ref().map_err(Clone::clone)?;
        let document = package.as_document();
        let parsed = sxd_xpath::Factory::new().build(xpath).map_err(|error| error.to_string())?;
        let parsed = parsed.ok_or("the expression is empty")?;
        let mut scope = sxd_xpath::Context::new();
        scope.set_namespace("xml", "http://www.w3.org/XML/1998/namespace");
        for (prefix, uri) in context {
            scope.set_namespace(prefix, uri);
        }
        let value = parsed.evaluate(&scope, document.root()).map_err(|error| error.to_string())?;
        let sxd_xpath::Value::Nodeset(nodes) = value else {
            return Ok(vec![Found { text: value.into_string(), element: None }]);
        };
        let found = nodes
            .document_order()
            .into_iter()
            .map(|node| Found { element: self.counterpart(&node), text: node.string_value() });
        Ok(found.collect())
    }

    fn element_of(&self, node: NodeId) -> Option<NodeId> {
        let mut node = node;
        while self.tree.element(node).is_none() {
            node = self.tree.parent(node)?;
        }
        Some(node)
    }

    /// The element that the other engine calls by another name: the same number of elements stands before it.
    fn counterpart(&self, node: &sxd_xpath::nodeset::Node<'_>) -> Option<NodeId> {
        use sxd_xpath::nodeset::Node;
        let mut node = *node;
        while !matches!(node, Node::Element(_)) {
            node = node.parent()?;
        }
        let mut path = Vec::new();
        while matches!(node, Node::Element(_)) {
            let before =
                node.preceding_siblings().iter().filter(|node| matches!(node, Node::Element(_))).count();
            path.push(before);
            node = node.parent()?;
        }
        let mut here = self.tree.root();
        for place in path.into_iter().rev() {
            let mut elements =
                self.tree.children_iter(here).filter(|child| self.tree.element(*child).is_some());
            here = elements.nth(place)?;
        }
        Some(here)
    }
}
