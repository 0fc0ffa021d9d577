use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use candle_core::Device;
use candle_core::quantized::QTensor;
use candle_core::quantized::gguf_file::{Content, Value};
use fs_err::File;

use super::EngineError;

/// A model file: its metadata and tensors.
pub struct Gguf {
    path: PathBuf,
    content: Content,
    file: BufReader<File>,
}

impl Gguf {
    /// Reads the header of a file.
    pub fn open(path: &Path) -> Result<Self, EngineError> {
        let file = File::open(path).map_err(|e| EngineError::Read {
            path: path.to_owned(),
            reason: e.to_string(),
            missing: e.kind() == io::ErrorKind::NotFound,
        })?;
        let mut file = BufReader::with_capacity(1 << 20, file);
        let content =
            Content::read(&mut Head::of(&mut file)).map_err(|e| EngineError::Invalid {
                path: path.to_owned(),
                reason: e.to_string(),
            })?;
        Ok(Self {
            path: path.to_owned(),
            content,
            file,
        })
    }

    /// Reads a tensor by its name.
    pub fn tensor(&mut self, name: &str) -> Result<QTensor, EngineError> {
        self.content
            .tensor(&mut self.file, name, &Device::Cpu)
            .map_err(|e| EngineError::Invalid {
                path: self.path.clone(),
                reason: format!("tensor `{name}`: {e}"),
            })
    }

    /// Whether there is a tensor with this name.
    pub fn has_tensor(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    /// Reads a tensor of any type as floats.
    pub fn floats(&mut self, name: &str) -> Result<Vec<f32>, EngineError> {
        let tensor = self.tensor(name)?;
        let floats = tensor.dequantize(&Device::Cpu)?;
        Ok(floats.flatten_all()?.to_vec1()?)
    }

    /// An error about an invalid file.
    pub fn invalid(&self, reason: impl Into<String>) -> EngineError {
        EngineError::Invalid {
            path: self.path.clone(),
            reason: reason.into(),
        }
    }

    /// An error about an unsupported feature.
    pub fn unsupported(&self, reason: impl Into<String>) -> EngineError {
        EngineError::Unsupported {
            path: self.path.clone(),
            reason: reason.into(),
        }
    }

    /// An integer value, if present.
    pub fn number(&self, key: &str) -> Option<usize> {
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

    /// A required integer value.
    pub fn required(&self, key: &str) -> Result<usize, EngineError> {
        self.number(key)
            .ok_or_else(|| self.invalid(format!("`{key}` is missing or not a number")))
    }

    /// A float value, if present.
    pub fn float(&self, key: &str) -> Option<f32> {
        self.content.metadata.get(key)?.to_f32().ok()
    }

    /// A string value, if present.
    pub fn text(&self, key: &str) -> Option<&str> {
        let text = self.content.metadata.get(key)?.to_string().ok()?;
        Some(text)
    }

    /// A boolean value, if present.
    pub fn flag(&self, key: &str) -> Option<bool> {
        self.content.metadata.get(key)?.to_bool().ok()
    }

    /// An array value, if present.
    pub fn list(&self, key: &str) -> Option<&[Value]> {
        let list = self.content.metadata.get(key)?.to_vec().ok()?;
        Some(list)
    }
}

/// Checks the header before it reaches the library, which divides by the alignment without checking it.
struct Head<R> {
    file: R,
    /// The number of parts read since the alignment key: its type and its value follow.
    since_key: Option<u8>,
}

impl<R> Head<R> {
    fn of(file: R) -> Self {
        Self {
            file,
            since_key: None,
        }
    }
}

impl<R: Read> Read for Head<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }

    /// The library reads every key, type and value with a separate call.
    fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact(buffer)?;
        self.since_key = match self.since_key {
            _ if buffer == b"general.alignment" => Some(0),
            Some(0) => Some(1),
            Some(_) if buffer.iter().all(|byte| *byte == 0) => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "`general.alignment` is 0",
                ));
            }
            _ => None,
        };
        Ok(())
    }
}

impl<R: Seek> Seek for Head<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file without tensors, whose only metadata is the alignment.
    fn aligned(kind: u32, value: &[u8]) -> candle_core::Result<Content> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3_u32.to_le_bytes());
        bytes.extend(0_u64.to_le_bytes());
        bytes.extend(1_u64.to_le_bytes());
        bytes.extend(17_u64.to_le_bytes());
        bytes.extend(b"general.alignment");
        bytes.extend(kind.to_le_bytes());
        bytes.extend(value);
        Content::read(&mut Head::of(io::Cursor::new(bytes)))
    }

    #[test]
    fn an_alignment_of_0_is_an_error() {
        assert!(aligned(4, &32_u32.to_le_bytes()).is_ok());
        for (kind, value) in [(0, &[0][..]), (2, &[0; 2]), (4, &[0; 4]), (5, &[0; 4])] {
            let error = aligned(kind, value).err().unwrap().to_string();
            assert!(error.contains("`general.alignment` is 0"), "{error}");
        }
    }
}
