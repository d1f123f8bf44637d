//! Rows of different lengths as one tensor.

use tch::Tensor;

/// Rows padded with zeros at their end to the longest: [b, S] Int64.
pub fn pad_rows(rows: &[&[i64]]) -> Tensor {
    let longest = rows.iter().map(|r| r.len()).max().unwrap_or(0);
    let flat: Vec<i64> =
        rows.iter().flat_map(|r| r.iter().copied().chain(std::iter::repeat_n(0, longest - r.len()))).collect();
    Tensor::from_slice(&flat).view([rows.len() as i64, longest as i64])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_padded_at_their_end() {
        let t = pad_rows(&[&[1, 2, 3], &[4]]);
        assert_eq!(t.size(), [2, 3]);
        assert_eq!(Vec::<i64>::try_from(t.view([-1])).unwrap(), [1, 2, 3, 4, 0, 0]);
    }
}
