//! Tensors to a safetensors file and back, one at a time: a state is many times as large as what memory has to spare.

use super::CheckpointError;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use tch::{Device, Kind, Tensor};

/// Writes tensors (float32, float64, Int64); returns the file's CRC-32C.
///
/// # Errors
/// The disk refuses, or a tensor holds something that is no number.
pub fn write_tensors(path: &Path, tensors: &[(String, Tensor)]) -> Result<u32, CheckpointError> {
    let mut offset = 0;
    let mut header = serde_json::Map::new();
    for (name, tensor) in tensors {
        let end = offset + stored(tensor.kind()).elt_size_in_bytes() * tensor.numel();
        let dtype = word(tensor.kind());
        header.insert(name.clone(), json!({ "dtype": dtype, "shape": tensor.size(), "data_offsets": [offset, end] }));
        offset = end;
    }
    let mut header = serde_json::Value::from(header).to_string();
    header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len())); // the format's alignment
    let io = || CheckpointError::io("write", path);
    let mut file = Checked { file: BufWriter::new(File::create(path).map_err(io())?), sum: 0 };
    file.write_all(&(header.len() as u64).to_le_bytes()).map_err(io())?;
    file.write_all(header.as_bytes()).map_err(io())?;
    for (name, tensor) in tensors {
        file.write_all(&bytes(name, tensor)?).map_err(io())?;
    }
    file.flush().map_err(io())?;
    Ok(file.sum)
}

/// Reads what [`write_tensors`] wrote.
///
/// # Errors
/// The file cannot be read, or is not what was written.
pub fn read_tensors(path: &Path, sum: u32) -> Result<Vec<(String, Tensor)>, CheckpointError> {
    let data = std::fs::read(path).map_err(CheckpointError::io("read", path))?;
    let damaged = |problem: String| CheckpointError::Damaged { path: path.into(), problem };
    let found = crc32c::crc32c(&data);
    if found != sum {
        return Err(damaged(format!("its checksum is {found:08x}, {sum:08x} was written")));
    }
    let file = SafeTensors::deserialize(&data).map_err(|e| damaged(e.to_string()))?;
    let tensor = |(name, view): (String, safetensors::tensor::TensorView<'_>)| {
        let kind = kind(view.dtype()).ok_or_else(|| damaged(format!("`{name}` is {:?}", view.dtype())))?;
        let shape: Vec<i64> = view.shape().iter().map(|&n| n as i64).collect();
        let tensor = Tensor::f_from_data_size(view.data(), &shape, kind).map_err(|e| damaged(e.to_string()))?;
        Ok((name, tensor))
    };
    file.tensors().into_iter().map(tensor).collect()
}

/// Whether a file of tensors is as long as its header says. Reads no tensor: a state is large.
#[must_use]
pub fn seems_whole(path: &Path) -> bool {
    let header = || {
        let mut file = File::open(path)?;
        let all = file.metadata()?.len();
        let mut length = [0; 8];
        file.read_exact(&mut length)?;
        let length = u64::from_le_bytes(length);
        let mut header = Vec::new();
        file.take(length.min(all)).read_to_end(&mut header)?;
        Ok::<_, io::Error>((all, length, header))
    };
    let Ok((all, length, header)) = header() else { return false };
    let Ok(tensors) = serde_json::from_slice::<serde_json::Map<String, Value>>(&header) else { return false };
    let end = tensors.values().filter_map(|tensor| tensor["data_offsets"][1].as_u64()).max().unwrap_or(0);
    8 + length + end == all
}

/// A tensor's little-endian bytes.
fn bytes(name: &str, tensor: &Tensor) -> Result<Vec<u8>, CheckpointError> {
    let flat = tensor.detach().to_kind(stored(tensor.kind())).to_device(Device::Cpu).contiguous().view([-1]);
    if flat.isfinite().all().int64_value(&[]) == 0 {
        return Err(CheckpointError::NotFinite { tensor: name.to_owned() });
    }
    let mut bytes = vec![0; flat.kind().elt_size_in_bytes() * flat.numel()];
    flat.copy_data_u8(&mut bytes, flat.numel());
    Ok(bytes)
}

/// How a kind is stored: nothing of a state is less exact than float32.
fn stored(kind: Kind) -> Kind {
    match kind {
        Kind::Double | Kind::Int64 => kind,
        _ => Kind::Float,
    }
}

fn word(kind: Kind) -> &'static str {
    match stored(kind) {
        Kind::Double => "F64",
        Kind::Int64 => "I64",
        _ => "F32",
    }
}

fn kind(dtype: Dtype) -> Option<Kind> {
    match dtype {
        Dtype::F32 => Some(Kind::Float),
        Dtype::F64 => Some(Kind::Double),
        Dtype::I64 => Some(Kind::Int64),
        _ => None,
    }
}

/// A file whose checksum is made on the way.
struct Checked<W> {
    file: W,
    sum: u32,
}

impl<W: Write> Write for Checked<W> {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        let written = self.file.write(data)?;
        self.sum = crc32c::crc32c_append(self.sum, &data[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_come_back_bit_for_bit_and_damage_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let odd = Tensor::from_slice(&[1.0f32, -0.0, f32::MIN_POSITIVE / 2.0, 3e38, 0.1, 7.0]).view([2, 3]);
        let tensors = [("b".to_owned(), odd.shallow_clone()), ("a".to_owned(), Tensor::from(7i64))];
        let sum = write_tensors(&path, &tensors).unwrap();
        let back = read_tensors(&path, sum).unwrap();
        let found = |name: &str| &back.iter().find(|(n, _)| n == name).unwrap().1;
        assert_eq!((found("b").size(), found("a").size()), (vec![2, 3], vec![]));
        assert_eq!((found("a").kind(), found("a").int64_value(&[])), (Kind::Int64, 7));
        let bits = |t: &Tensor| Vec::<i32>::try_from(t.view([-1]).view_dtype(Kind::Int)).unwrap();
        assert_eq!(bits(found("b")), bits(&odd));

        let mut data = std::fs::read(&path).unwrap();
        *data.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &data).unwrap();
        let error = read_tensors(&path, sum).unwrap_err().to_string();
        assert!(error.contains("is damaged (its checksum is"), "{error}");
    }

    #[test]
    fn what_is_no_number_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let tensors = [("fc.weight".to_owned(), Tensor::from_slice(&[1.0f32, f32::NAN]))];
        let error = write_tensors(&dir.path().join("x"), &tensors).unwrap_err().to_string();
        assert!(error.starts_with("`fc.weight` holds values that are no numbers"), "{error}");
    }
}
