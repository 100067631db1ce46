//! Comments, CDATA sections, processing instructions and DOCTYPEs. They may be endless, so the position moves through
//! them; only inside a captured element their text is looked back at.

use super::{Mode, Scanner};
use crate::Kind;
use crate::read::names;
use crate::read::part::Part;

impl Scanner {
    /// `<!…`: a comment, a section, a DOCTYPE, or text.
    pub(super) fn declaration(&mut self) -> bool {
        let rest = &self.input.text.as_bytes()[self.at..];
        let is = |mark: &[u8]| rest.len() >= mark.len() && rest[..mark.len()].eq_ignore_ascii_case(mark);
        let may_be = |mark: &[u8]| rest.len() < mark.len() && rest.eq_ignore_ascii_case(&mark[..rest.len()]);
        let marks: [&[u8]; 3] = [b"<!--", b"<![CDATA[", b"<!DOCTYPE"];
        if is(marks[0]) {
            self.mode = Mode::Comment(self.at);
            self.at += marks[0].len();
        } else if rest.starts_with(marks[1]) {
            self.mode = Mode::Section;
            self.at += marks[1].len();
        } else if is(marks[2]) {
            if !self.stack.is_empty() {
                self.problem(self.at, Kind::InnerProlog);
            }
            self.mode = Mode::Doctype(self.at, false);
            self.at += marks[2].len();
        } else if !self.ended && marks.iter().any(|mark| may_be(mark)) {
            return false;
        } else {
            self.less_than();
        }
        true
    }

    /// The end mark of a section, comment or instruction, or how far it certainly does not stand.
    pub(super) fn find_end(&self, mark: &str) -> Result<usize, usize> {
        let rest = &self.input.text[self.at..];
        if let Some(length) = memchr::memmem::find(rest.as_bytes(), mark.as_bytes()) {
            return Ok(self.at + length);
        }
        let kept = if self.ended { 0 } else { mark.len() - 1 };
        Err(self.at + rest.floor_char_boundary(rest.len().saturating_sub(kept)))
    }

    pub(super) fn section(&mut self) -> bool {
        let (end, next, found) = match self.find_end("]]>") {
            Ok(end) => (end, end + 3, true),
            Err(end) => (end, end, false),
        };
        let range = self.at..end;
        if self.capture.is_none() {
            if let Some(Part::Leaf(_)) = self.top() {
                if !self.leaf_full {
                    self.leaf.push_str(&self.input.text[range]);
                    self.trim_leaf();
                }
            } else {
                self.outside(range);
            }
        }
        self.at = next;
        if found {
            self.mode = Mode::Content;
        }
        self.check_size();
        found
    }

    pub(super) fn comment(&mut self, start: usize) -> bool {
        match self.find_end("-->") {
            Ok(end) => {
                if self.capture.is_some() {
                    let inside = &self.input.text[start + "<!--".len()..end];
                    if inside.contains("--") || inside.ends_with('-') {
                        self.problem(start, Kind::BadComment);
                        self.repair(start, end + 3 - start, "");
                    }
                }
                self.leave(end + 3);
                true
            }
            Err(end) => self.wait(end),
        }
    }

    pub(super) fn instruction(&mut self, start: usize) -> bool {
        match self.find_end("?>") {
            Ok(end) => {
                if self.capture.is_some() {
                    let inside = &self.input.text[start + "<?".len()..end];
                    let target = inside.split(|c: char| c.is_ascii_whitespace()).next().unwrap_or_default();
                    if !names::is_target(target) {
                        if target != "xml" {
                            self.problem(start, Kind::BadComment);
                        }
                        self.repair(start, end + 2 - start, "");
                    }
                }
                self.leave(end + 2);
                true
            }
            Err(end) => self.wait(end),
        }
    }

    pub(super) fn doctype(&mut self, start: usize, subset: bool) -> bool {
        let rest = &self.input.text.as_bytes()[self.at..];
        let Some(length) = memchr::memchr3(b'[', b']', b'>', rest) else {
            return self.wait(self.input.text.len());
        };
        let mark = rest[length];
        let next = self.at + length + 1;
        if mark == b'>' && !subset {
            if self.capture.is_some() {
                self.repair(start, next - start, "");
            }
            self.leave(next);
        } else {
            self.mode = Mode::Doctype(start, if mark == b'>' { subset } else { mark == b'[' });
            self.at = next;
        }
        true
    }

    pub(super) fn leave(&mut self, at: usize) {
        self.at = at;
        self.mode = Mode::Content;
        self.check_size();
    }

    pub(super) fn wait(&mut self, at: usize) -> bool {
        self.at = at;
        self.check_size();
        false
    }
}
