//! One language, speaking.

use fluent_bundle::{FluentArgs, FluentValue};
use unic_langid::CharacterDirection;

use crate::{Bundle, Texts};

/// The language that one reader is answered in.
#[derive(Clone, Debug)]
pub struct Tongue {
    texts: Texts,
    number: usize,
}

/// Something that is filled into a sentence.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// Decides between one and many, and is shown with its digits in groups.
    Number(u64),
    Text(&'a str),
}

impl From<u64> for Arg<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl<'a> From<&'a str> for Arg<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Arg<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl Default for Tongue {
    /// English.
    fn default() -> Self {
        Self::new(Texts::built_in(), 0)
    }
}

impl Tongue {
    pub(crate) fn new(texts: Texts, number: usize) -> Self {
        Self { texts, number }
    }

    /// The code of the language, for `lang`.
    pub fn lang(&self) -> String {
        self.texts.languages[self.number].id.to_string()
    }

    /// Where lines begin, for `dir`.
    pub fn dir(&self) -> &'static str {
        match self.texts.languages[self.number].id.character_direction() {
            CharacterDirection::RTL => "rtl",
            _ => "ltr",
        }
    }

    /// The sentence with this id, or its attribute (`id.attribute`).
    pub fn say(&self, id: &str) -> String {
        self.say_with(id, &[])
    }

    /// The sentence with this id, filled in.
    pub fn say_with(&self, id: &str, args: &[(&str, Arg<'_>)]) -> String {
        let mut filled = FluentArgs::with_capacity(args.len());
        for (name, value) in args {
            let value = match *value {
                Arg::Number(number) => FluentValue::from(number),
                Arg::Text(text) => FluentValue::from(text),
            };
            filled.set(*name, value);
        }
        let languages = &self.texts.languages;
        let own = said(&languages[self.number].bundle, id, &filled);
        own.or_else(|| said(&languages[0].bundle, id, &filled)).unwrap_or_else(|| {
            tracing::error!(id, "no language has this sentence");
            id.to_owned()
        })
    }

    /// The name of a month, 1 to 12.
    pub fn month(&self, number: u8) -> String {
        self.say(&format!("month-{number}"))
    }

    /// The name of a day of the week, 1 (Monday) to 7.
    pub fn weekday(&self, number: u8) -> String {
        self.say(&format!("weekday-{number}"))
    }

    /// The letter over a column of the calendar.
    pub fn weekday_letter(&self, number: u8) -> String {
        self.say(&format!("weekday-{number}.letter"))
    }

    /// A number with its digits in groups.
    pub fn number(&self, number: u64) -> String {
        crate::number::grouped(number)
    }
}

fn said(bundle: &Bundle, id: &str, args: &FluentArgs<'_>) -> Option<String> {
    let (id, attribute) = id.split_once('.').map_or((id, None), |(id, attribute)| (id, Some(attribute)));
    let message = bundle.get_message(id)?;
    let pattern = match attribute {
        Some(attribute) => message.get_attribute(attribute)?.value(),
        None => message.value()?,
    };
    let mut errors = Vec::new();
    let text = bundle.format_pattern(pattern, Some(args), &mut errors).into_owned();
    // A translation that asks for something that is not there: the original is better than half a sentence.
    errors.is_empty().then_some(text)
}
