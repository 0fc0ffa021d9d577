use std::fmt::Write as _;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use candle_core::Device;
use candle_core::quantized::gguf_file::{self, Content, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use fs_err::File;
use sha2::{Digest, Sha256};

use super::engine::EngineError;

/// Part of the names of converted files; raised when the conversion changes.
const CONVERSION: &str = "q8_0-1";

/// A model file: what it says about itself, and its tensors.
pub(super) struct Gguf {
    path: PathBuf,
    content: Content,
    file: BufReader<File>,
}

impl Gguf {
    /// Reads the head of a file.
    pub(super) fn open(path: &Path) -> Result<Self, EngineError> {
        let file = File::open(path).map_err(|e| EngineError::Read {
            path: path.to_owned(),
            reason: e.to_string(),
            missing: e.kind() == std::io::ErrorKind::NotFound,
        })?;
        let mut file = BufReader::with_capacity(1 << 20, file);
        let content = Content::read(&mut file).map_err(|e| EngineError::Invalid {
            path: path.to_owned(),
            reason: e.to_string(),
        })?;
        Ok(Self {
            path: path.to_owned(),
            content,
            file,
        })
    }

    /// Whether some tensors are of types that have no fast product and have to be converted.
    pub(super) fn needs_conversion(&self) -> bool {
        self.content
            .tensor_infos
            .values()
            .any(|info| is_slow(info.ggml_dtype))
    }

    /// Opens the converted form of a file from the cache, or makes it and puts it there. A cache that
    /// cannot be written is no reason to fail: then the file is as it was, and converted while it
    /// is read.
    pub(super) fn open_converted(path: &Path, cache: &Path) -> Result<Self, EngineError> {
        let original = Self::open(path)?;
        if !original.needs_conversion() {
            return Ok(original);
        }
        let Some(name) = CachedName::of(path) else {
            return Ok(original);
        };
        let cached = cache.join(name.file());
        if let Ok(converted) = Self::open(&cached)
            && !converted.needs_conversion()
        {
            return Ok(converted);
        }
        match original.convert(cache, &cached) {
            Ok(()) => {
                name.remove_older(cache);
                Self::open(&cached)
            }
            Err(_) => Self::open(path),
        }
    }

    /// Whether [`Gguf::open_converted`] would have to convert.
    pub(super) fn is_converted(path: &Path, cache: &Path) -> bool {
        CachedName::of(path).is_some_and(|name| cache.join(name.file()).exists())
            || Self::open(path).is_ok_and(|file| !file.needs_conversion())
    }

    fn convert(mut self, cache: &Path, target: &Path) -> Result<(), Box<dyn std::error::Error>> {
        let mut names: Vec<String> = self.content.tensor_infos.keys().cloned().collect();
        names.sort_unstable();
        let mut tensors = Vec::with_capacity(names.len());
        for name in &names {
            tensors.push(self.tensor(name)?);
        }
        let metadata: Vec<(&str, &Value)> = self
            .content
            .metadata
            .iter()
            // The writer aligns to 32 bytes, whatever the file did.
            .filter(|(key, _)| *key != "general.alignment")
            .map(|(key, value)| (key.as_str(), value))
            .collect();
        let tensors: Vec<(&str, &QTensor)> =
            names.iter().map(String::as_str).zip(&tensors).collect();
        fs_err::create_dir_all(cache)?;
        // The file gets its name when it is whole; of two processes the later one wins, with the same.
        let part = tempfile::Builder::new()
            .prefix(".converting-")
            .tempfile_in(cache)?;
        let mut writer = BufWriter::new(part);
        gguf_file::write(&mut writer, &metadata, &tensors)?;
        writer.flush()?;
        let part = writer.into_inner()?;
        part.as_file().sync_all()?;
        part.persist(target)?;
        Ok(())
    }

    /// A tensor by its name, converted if its type is slow.
    pub(super) fn tensor(&mut self, name: &str) -> Result<QTensor, EngineError> {
        let tensor = self
            .content
            .tensor(&mut self.file, name, &Device::Cpu)
            .map_err(|e| EngineError::Invalid {
                path: self.path.clone(),
                reason: format!("tensor `{name}`: {e}"),
            })?;
        if is_slow(tensor.dtype()) && tensor.rank() > 1 {
            let floats = tensor.dequantize(&Device::Cpu)?;
            return Ok(QTensor::quantize(&floats, GgmlDType::Q8_0)?);
        }
        Ok(tensor)
    }

    /// Whether there is a tensor of this name.
    pub(super) fn has_tensor(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    /// A tensor as floats, whatever its type.
    pub(super) fn floats(&mut self, name: &str) -> Result<Vec<f32>, EngineError> {
        let tensor = self.tensor(name)?;
        let floats = tensor.dequantize(&Device::Cpu)?;
        Ok(floats.flatten_all()?.to_vec1()?)
    }

    /// The file itself is unsound.
    pub(super) fn invalid(&self, reason: impl Into<String>) -> EngineError {
        EngineError::Invalid {
            path: self.path.clone(),
            reason: reason.into(),
        }
    }

    /// The file asks for something that is not made here.
    pub(super) fn unsupported(&self, reason: impl Into<String>) -> EngineError {
        EngineError::Unsupported {
            path: self.path.clone(),
            reason: reason.into(),
        }
    }

    /// A whole number, if it is there.
    pub(super) fn number(&self, key: &str) -> Option<usize> {
        let value = self.content.metadata.get(key)?;
        let number = match value {
            Value::I32(v) => u64::try_from(*v).ok()?,
            Value::I64(v) => u64::try_from(*v).ok()?,
            Value::U8(v) => u64::from(*v),
            Value::U16(v) => u64::from(*v),
            other => other.to_u64().ok()?,
        };
        usize::try_from(number).ok()
    }

    /// A whole number that has to be there.
    pub(super) fn required(&self, key: &str) -> Result<usize, EngineError> {
        self.number(key)
            .ok_or_else(|| self.invalid(format!("`{key}` is missing or no number")))
    }

    /// A float, if it is there.
    pub(super) fn float(&self, key: &str) -> Option<f32> {
        self.content.metadata.get(key)?.to_f32().ok()
    }

    /// A text, if it is there.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        let text = self.content.metadata.get(key)?.to_string().ok()?;
        Some(text)
    }

    /// A truth value, if it is there.
    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        self.content.metadata.get(key)?.to_bool().ok()
    }

    /// A list, if it is there.
    pub(super) fn list(&self, key: &str) -> Option<&[Value]> {
        let list = self.content.metadata.get(key)?.to_vec().ok()?;
        Some(list)
    }
}

/// Types for which candle has only scalar products (candle-core 0.11.1).
fn is_slow(dtype: GgmlDType) -> bool {
    matches!(dtype, GgmlDType::Q4_1 | GgmlDType::Q5_0 | GgmlDType::Q5_1)
}

/// The name of a converted file: of the original's own, of where it lies, and of its size and age, so
/// that a changed file is converted anew.
struct CachedName {
    stem: String,
    place: String,
    state: String,
}

impl CachedName {
    fn of(path: &Path) -> Option<Self> {
        let path = fs_err::canonicalize(path).ok()?;
        let metadata = fs_err::metadata(&path).ok()?;
        let age = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Self {
            stem: path.file_stem()?.to_string_lossy().into_owned(),
            place: digest(path.as_os_str().as_encoded_bytes()),
            state: digest(format!("{} {} {CONVERSION}", metadata.len(), age.as_nanos()).as_bytes()),
        })
    }

    fn prefix(&self) -> String {
        format!("{}.{}-", self.stem, self.place)
    }

    fn file(&self) -> String {
        format!("{}{}.q8_0.gguf", self.prefix(), self.state)
    }

    /// Removes what was made of earlier states of the same file.
    fn remove_older(&self, cache: &Path) {
        let Ok(entries) = fs_err::read_dir(cache) else {
            return;
        };
        let (prefix, current) = (self.prefix(), self.file());
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(&prefix) && name.ends_with(".q8_0.gguf") && name != current {
                // It is in nobody's way if it stays.
                let _ = fs_err::remove_file(entry.path());
            }
        }
    }
}

/// Half of a SHA-256's first quarter: enough to tell the files of one machine apart.
fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .take(8)
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}
