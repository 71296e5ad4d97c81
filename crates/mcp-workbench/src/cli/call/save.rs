//! Saves the result of a call: images, audio and files as bytes, or the text if there are none. Existing files
//! are never overwritten.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use rawjson::RawJson;
use thiserror::Error;

use super::result::{ResultReader, render};

/// Accepts base64 with and without padding, because servers differ.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Reasons why a result could not be saved.
#[derive(Debug, Error)]
pub(super) enum SaveError {
    #[error("{} exists already\n  hint: choose a different file, or move this one", .0.display())]
    Exists(PathBuf),
    #[error("cannot write {}", file.display())]
    Unwritable {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The server sent invalid base64.
    #[error("the data for {} is not valid base64", .0.display())]
    NotBase64(PathBuf),
}

/// The file to save a result to.
pub(super) struct OutputFile {
    file: PathBuf,
}

impl OutputFile {
    /// Checks that the file does not exist. This happens before the call, which may have side effects.
    pub(super) fn new(file: &Path) -> Result<Self, SaveError> {
        if file.try_exists().unwrap_or(false) {
            return Err(SaveError::Exists(file.to_owned()));
        }
        let folder = file.parent().filter(|folder| !folder.is_dir());
        match folder {
            Some(_) => Err(SaveError::Unwritable {
                file: file.to_owned(),
                source: io::Error::new(io::ErrorKind::NotFound, "its folder does not exist"),
            }),
            None => Ok(Self {
                file: file.to_owned(),
            }),
        }
    }

    /// Saves a result; returns the files with their sizes.
    pub(super) fn save(&self, result: &RawJson) -> Result<Vec<(PathBuf, usize)>, SaveError> {
        let encoded = blobs(result);
        if encoded.is_empty() {
            let text = render(result, ResultReader::Program);
            return Ok(vec![write(self.file.clone(), text.as_bytes())?]);
        }
        let mut saved = Vec::new();
        for (index, encoded) in encoded.iter().enumerate() {
            let file = self.numbered(index);
            let bytes = BASE64
                .decode(encoded)
                .map_err(|_| SaveError::NotBase64(file.clone()))?;
            saved.push(write(file, &bytes)?);
        }
        Ok(saved)
    }

    /// Returns the file for a blob: `a.png`, `a-2.png`, `a-3.png`.
    fn numbered(&self, index: usize) -> PathBuf {
        if index == 0 {
            return self.file.clone();
        }
        let stem = self.file.file_stem().unwrap_or_default().to_string_lossy();
        let mut name = format!("{stem}-{}", index + 1);
        if let Some(extension) = self.file.extension() {
            name.push_str(&format!(".{}", extension.to_string_lossy()));
        }
        self.file.with_file_name(name)
    }
}

/// Returns the base64 values of a result.
fn blobs(result: &RawJson) -> Vec<String> {
    let content = result.member("content").and_then(|it| it.elements());
    let blobs = content.unwrap_or_default().into_iter().filter_map(|item| {
        let resource = item.member("resource");
        let blob = match &resource {
            Some(resource) => resource.member("blob"),
            None => item.member("data"),
        };
        Some(blob?.as_text()?.into_owned())
    });
    blobs.collect()
}

fn write(file: PathBuf, bytes: &[u8]) -> Result<(PathBuf, usize), SaveError> {
    let opened = fs::OpenOptions::new()
        .write(true)
        // The file may have been created since it was checked.
        .create_new(true)
        .open(&file);
    let written = opened.and_then(|mut opened| opened.write_all(bytes));
    match written {
        Ok(()) => Ok((file, bytes.len())),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(SaveError::Exists(file)),
        Err(source) => Err(SaveError::Unwritable { file, source }),
    }
}
