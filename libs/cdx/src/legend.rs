//! Which column of a CDX line means what.
//!
//! A CDX file says so in its first line: ` CDX N b a m s k r M S V g`. The first byte of that line is the
//! delimiter of the file. Files without it are read by their number of columns.

/// What one column holds. The letters are those of the CDX legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Column {
    /// `N`: the sort key.
    Key,
    /// `b`: the timestamp.
    Timestamp,
    /// `a`: the URL.
    Url,
    /// `m`: the MIME type.
    Mime,
    /// `s`: the HTTP status.
    Status,
    /// `k` (new style) or `c` (old style): the digest.
    Digest,
    /// `r`: the redirect.
    Redirect,
    /// `M`: the robot flags.
    Robots,
    /// `S`: the length of the stored record.
    Length,
    /// `V` (compressed) or `v` (plain): the offset.
    Offset,
    /// `g`: the file.
    Filename,
    /// The stored length of the record that a revisit repeats (the twelfth column of CDX 14).
    OriginalLength,
    /// The offset of that record.
    OriginalOffset,
    /// The file of that record.
    OriginalFilename,
    /// A letter that means nothing here.
    Ignored,
}

/// The columns of a CDX file, or the mark that it holds CDXJ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Legend {
    columns: Vec<Column>,
    delimiter: u8,
}

const CDX11: [Column; 11] = [
    Column::Key,
    Column::Timestamp,
    Column::Url,
    Column::Mime,
    Column::Status,
    Column::Digest,
    Column::Redirect,
    Column::Robots,
    Column::Length,
    Column::Offset,
    Column::Filename,
];

impl Legend {
    /// `N b a m s k r V g`
    #[must_use]
    pub fn cdx9() -> Self {
        Self::without(&[Column::Robots, Column::Length])
    }

    /// `N b a m s k r M V g`
    #[must_use]
    pub fn cdx10() -> Self {
        Self::without(&[Column::Length])
    }

    /// `N b a m s k r M S V g`
    #[must_use]
    pub fn cdx11() -> Self {
        Self::without(&[])
    }

    /// CDX 11 followed by length, offset and file of the record that a revisit repeats.
    #[must_use]
    pub fn cdx14() -> Self {
        let mut legend = Self::cdx11();
        legend.columns.extend([Column::OriginalLength, Column::OriginalOffset, Column::OriginalFilename]);
        legend
    }

    fn without(dropped: &[Column]) -> Self {
        let columns = CDX11.into_iter().filter(|column| !dropped.contains(column)).collect();
        Self { columns, delimiter: b' ' }
    }

    /// The usual columns for a line of that many, if there are any.
    #[must_use]
    pub fn by_count(columns: usize) -> Option<Self> {
        match columns {
            9 => Some(Self::cdx9()),
            10 => Some(Self::cdx10()),
            11 => Some(Self::cdx11()),
            14 => Some(Self::cdx14()),
            _ => None,
        }
    }

    /// Reads a legend line (` CDX N b a …`); `None` if `line` is none.
    ///
    /// ```
    /// use cdx::{Column, Legend};
    /// let legend = Legend::parse(b" CDX N b a m s k r V g").unwrap();
    /// assert_eq!(legend, Legend::cdx9());
    /// let wget = Legend::parse(b" CDX a b a m s c k r M V g u").unwrap();
    /// assert_eq!(wget.columns()[0], Column::Url);
    /// ```
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        let (&delimiter, rest) = line.split_first()?;
        let letters = rest.strip_prefix(b"CDX")?.strip_prefix(&[delimiter])?;
        if delimiter.is_ascii_alphanumeric() {
            return None;
        }
        let mut columns: Vec<Column> = Vec::new();
        for letter in letters.trim_ascii_end().split(|b| *b == delimiter) {
            let mut column = match letter {
                b"N" => Column::Key,
                b"b" => Column::Timestamp,
                b"a" => Column::Url,
                b"m" => Column::Mime,
                b"s" => Column::Status,
                b"k" | b"c" => Column::Digest,
                b"r" => Column::Redirect,
                b"M" => Column::Robots,
                b"S" => Column::Length,
                b"V" | b"v" => Column::Offset,
                b"g" => Column::Filename,
                _ => Column::Ignored,
            };
            // wget writes the URL twice, and both kinds of digest: the new-style one counts.
            if letter == b"k" {
                columns
                    .iter_mut()
                    .filter(|old| **old == Column::Digest)
                    .for_each(|old| *old = Column::Ignored);
            } else if columns.contains(&column) {
                column = Column::Ignored;
            }
            columns.push(column);
        }
        (!columns.is_empty()).then_some(Self { columns, delimiter })
    }

    /// The columns in their order.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The byte between two columns.
    #[must_use]
    pub const fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// The legend line without a line end. Columns that have no letter of their own are left out.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = String::from(" CDX");
        for column in &self.columns {
            let letter = match column {
                Column::Key => " N",
                Column::Timestamp => " b",
                Column::Url => " a",
                Column::Mime => " m",
                Column::Status => " s",
                Column::Digest => " k",
                Column::Redirect => " r",
                Column::Robots => " M",
                Column::Length => " S",
                Column::Offset => " V",
                Column::Filename => " g",
                Column::OriginalLength
                | Column::OriginalOffset
                | Column::OriginalFilename
                | Column::Ignored => "",
            };
            line.push_str(letter);
        }
        line
    }
}
