//! The rows that a training reads: a sample each, or several packed together.

use crate::config::{Data, DocumentIds};
use crate::data::{PreloadedDataset, Sample, document_ids, document_ids_reference, pack};
use crate::pipeline::Text;

/// The rows of a dataset.
pub(super) fn texts(dataset: &PreloadedDataset, data: &Data) -> Vec<Text> {
    let samples = dataset.samples();
    if data.pack == 0 {
        return samples.iter().map(|sample| row(&[sample])).collect();
    }
    let lengths: Vec<usize> = samples.iter().map(|sample| sample.ids.len()).collect();
    let of_row = |members: Vec<usize>| {
        let members: Vec<&Sample> = members.into_iter().map(|i| &samples[i]).collect();
        packed_row(&members, data.document_ids)
    };
    pack(&lengths, data.pack).into_iter().map(of_row).collect()
}

/// Samples one behind the other, told apart.
fn packed_row(samples: &[&Sample], how: DocumentIds) -> Text {
    let lengths: Vec<usize> = samples.iter().map(|sample| sample.ids.len()).collect();
    let number = match how {
        DocumentIds::Fast => document_ids,
        DocumentIds::Reference => document_ids_reference,
    };
    Text { documents: Some(number(&lengths, lengths.iter().sum())), ..row(samples) }
}

/// Samples one behind the other.
fn row(samples: &[&Sample]) -> Text {
    Text {
        ids: samples.iter().flat_map(|sample| &sample.ids).map(|&id| i64::from(id)).collect(),
        loss_mask: samples.iter().flat_map(|sample| &sample.loss_mask).copied().collect(),
        name: samples.iter().map(|sample| sample.id.as_str()).collect::<Vec<_>>().join(" + "),
        documents: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stand_behind_each_other_and_keep_their_documents() {
        let sample =
            |id: &str, ids: &[u32]| Sample { id: id.into(), ids: ids.into(), loss_mask: vec![true; ids.len()] };
        let (a, b) = (sample("a", &[5, 6]), sample("b", &[7, 8, 9]));
        for how in [DocumentIds::Fast, DocumentIds::Reference] {
            let text = packed_row(&[&a, &b], how);
            assert_eq!((text.ids, text.name.as_str()), (vec![5, 6, 7, 8, 9], "a + b"));
            assert_eq!(text.documents, Some(vec![0, 0, 1, 1, 1]));
        }
    }
}
