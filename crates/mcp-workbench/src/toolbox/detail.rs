//! How much is said of each tool.

/// How much is said of each tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    Names,
    /// Its name and what it does, in a sentence.
    Brief,
    /// Its name, its typed parameters and what it does.
    Signature,
    /// Everything that its server says of it.
    Full,
}

impl Detail {
    /// All of them, from the least to the most.
    pub(crate) const ALL: [Self; 4] = [Self::Names, Self::Brief, Self::Signature, Self::Full];

    /// The words for them, in the same order.
    pub(crate) const WORDS: &'static [&'static str] = &["names", "brief", "signature", "full"];
}
