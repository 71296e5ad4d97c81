//! The smallest files that are still what they claim to be, as base64.

/// A red pixel as a PNG.
pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";

/// No sound at all, as a WAV with 16 bits and 8 kHz.
pub(crate) const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

/// The media type of [`PNG`].
pub(crate) const PNG_TYPE: &str = "image/png";

/// The media type of [`WAV`].
pub(crate) const WAV_TYPE: &str = "audio/wav";
