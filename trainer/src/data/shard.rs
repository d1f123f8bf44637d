//! One shard: a safetensors file that holds samples end to end.
//!
//! | tensor | type | shape | content |
//! |---|---|---|---|
//! | `input_ids` | I32 | tokens | token ids, sample after sample |
//! | `loss_mask` | U8 | tokens | 1 where the loss sees the token, else 0 |
//! | `offsets` | I64 | samples + 1 | where each sample begins in the two above; ends with the number of tokens |
//! | `sample_ids` | U8 | bytes | the samples' ids as UTF-8, one after another |
//! | `sample_id_offsets` | I64 | samples + 1 | where each id begins in `sample_ids` |

use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::{DataError, Sample};

/// The file's bytes for `samples`.
pub(super) fn encode(samples: &[Sample]) -> Result<Vec<u8>, DataError> {
    samples.iter().try_for_each(check)?;
    let ids: Vec<u8> = samples.iter().flat_map(|s| &s.ids).flat_map(|id| id.to_le_bytes()).collect();
    let mask: Vec<u8> = samples.iter().flat_map(|s| &s.loss_mask).map(|&inside| u8::from(inside)).collect();
    let offsets = offsets(samples.iter().map(|s| s.ids.len()));
    let names: Vec<u8> = samples.iter().flat_map(|s| s.id.bytes()).collect();
    let name_offsets = self::offsets(samples.iter().map(|s| s.id.len()));
    let tensors = [
        ("input_ids", Dtype::I32, &ids),
        ("loss_mask", Dtype::U8, &mask),
        ("offsets", Dtype::I64, &offsets),
        ("sample_ids", Dtype::U8, &names),
        ("sample_id_offsets", Dtype::I64, &name_offsets),
    ];
    let views = tensors
        .iter()
        .map(|(name, dtype, bytes)| Ok((*name, TensorView::new(*dtype, vec![bytes.len() / size(*dtype)], bytes)?)))
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>();
    views.and_then(|views| safetensors::serialize(views, None)).map_err(|e| DataError::Sample {
        id: samples.first().map(|s| s.id.clone()).unwrap_or_default(),
        problem: format!("the shard that begins with it cannot be written ({e})"),
    })
}

/// The samples of a shard's `bytes`; `path` is for messages.
pub(super) fn decode(bytes: &[u8], path: &Path) -> Result<Vec<Sample>, DataError> {
    let file = SafeTensors::deserialize(bytes)
        .map_err(|e| DataError::shard(path, "header", format!("not a safetensors file ({e})")))?;
    let tensor = |name, dtype| tensor(&file, name, dtype, path);
    let ids = ints(tensor("input_ids", Dtype::I32)?, u32::from_le_bytes);
    let mask = tensor("loss_mask", Dtype::U8)?;
    let offsets = ints(tensor("offsets", Dtype::I64)?, i64::from_le_bytes);
    let names = tensor("sample_ids", Dtype::U8)?;
    let name_offsets = ints(tensor("sample_id_offsets", Dtype::I64)?, i64::from_le_bytes);

    if mask.len() != ids.len() {
        let problem = format!("{} entries for {} tokens", mask.len(), ids.len());
        return Err(DataError::shard(path, "loss_mask", problem));
    }
    if let Some(other) = mask.iter().find(|&&byte| byte > 1) {
        return Err(DataError::shard(path, "loss_mask", format!("holds {other}, may hold 0 and 1 only")));
    }
    let ranges = ranges(&offsets, ids.len(), "offsets", path)?;
    let name_ranges = self::ranges(&name_offsets, names.len(), "sample_id_offsets", path)?;
    if name_ranges.len() != ranges.len() {
        let problem = format!("{} ids for {} samples", name_ranges.len(), ranges.len());
        return Err(DataError::shard(path, "sample_id_offsets", problem));
    }
    let sample = |(range, name): (std::ops::Range<usize>, std::ops::Range<usize>)| {
        let id = std::str::from_utf8(&names[name])
            .map_err(|_| DataError::shard(path, "sample_ids", "an id is not UTF-8"))?
            .to_owned();
        let loss_mask = mask[range.clone()].iter().map(|&byte| byte == 1).collect();
        Ok(Sample { id, ids: ids[range].to_vec(), loss_mask })
    };
    ranges.into_iter().zip(name_ranges).map(sample).collect()
}

fn check(sample: &Sample) -> Result<(), DataError> {
    let wrong = |problem| Err(DataError::Sample { id: sample.id.clone(), problem });
    if sample.ids.len() != sample.loss_mask.len() {
        return wrong(format!("{} ids but {} mask entries", sample.ids.len(), sample.loss_mask.len()));
    }
    match sample.ids.iter().find(|&&id| id > i32::MAX as u32) {
        Some(id) => wrong(format!("token id {id} does not fit 31 bits")),
        None => Ok(()),
    }
}

/// Running sums, from 0 to the total, as little-endian i64.
fn offsets(lengths: impl Iterator<Item = usize>) -> Vec<u8> {
    let mut total = 0i64;
    let ends = lengths.map(|length| {
        total += length as i64;
        total
    });
    std::iter::once(0).chain(ends).flat_map(i64::to_le_bytes).collect()
}

/// The ranges between offsets, which must run from 0 to `total` and never back.
fn ranges(offsets: &[i64], total: usize, field: &str, path: &Path) -> Result<Vec<std::ops::Range<usize>>, DataError> {
    let rising = offsets.is_sorted() && offsets.first() == Some(&0) && offsets.last() == Some(&(total as i64));
    if !rising {
        return Err(DataError::shard(path, field, format!("must rise from 0 to {total}")));
    }
    Ok(offsets.windows(2).map(|pair| pair[0] as usize..pair[1] as usize).collect())
}

/// The bytes of a tensor that must be there, one-dimensional and of this type.
fn tensor<'a>(file: &SafeTensors<'a>, name: &str, dtype: Dtype, path: &Path) -> Result<&'a [u8], DataError> {
    let view = file.tensor(name).map_err(|_| DataError::shard(path, name, "the tensor is missing"))?;
    if view.dtype() != dtype || view.shape().len() != 1 {
        let problem = format!("is {:?} {:?}, must be {dtype:?} with one dimension", view.dtype(), view.shape());
        return Err(DataError::shard(path, name, problem));
    }
    Ok(view.data())
}

fn size(dtype: Dtype) -> usize {
    dtype.bitsize() / 8
}

fn ints<const N: usize, T>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|chunk| read(*chunk)).collect()
}
