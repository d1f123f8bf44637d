use super::*;
use crate::data::ContentKey;

fn rows() -> Rows {
    Rows { key: ContentKey::new().text("x", "1").finish(), lengths: vec![2, 3, 1], width: 4, kind: Kind::BFloat16 }
}

fn states(row: usize) -> Tensor {
    let tokens = rows().lengths[row] as i64;
    (Tensor::arange(tokens * 4, (Kind::Float, tch::Device::Cpu)) * 0.37 + row as f64)
        .view([tokens, 4])
        .to_kind(Kind::BFloat16)
}

fn filled(root: &Path) -> PathBuf {
    let features = DiskFeatures::open(root, rows(), None).unwrap();
    features.write(&[(2, states(2)), (0, states(0))]).unwrap();
    features.write(&[(1, states(1))]).unwrap();
    features.close().unwrap();
    features.directory().to_owned()
}

fn error(root: &Path) -> String {
    DiskFeatures::open(root, rows(), None).and_then(|f| f.read(1)).unwrap_err().to_string()
}

#[test]
fn what_was_written_comes_back_bit_for_bit() {
    let place = tempfile::tempdir().unwrap();
    filled(place.path());
    let features = DiskFeatures::open(place.path(), rows(), None).unwrap();
    let another = DiskFeatures::open(place.path(), rows(), None).unwrap();
    assert_eq!(another.progress(), (3, 3), "whole ones may be read by several");
    for row in 0..3 {
        assert!(features.read(row).unwrap().equal(&states(row)));
    }
}

#[test]
fn what_was_interrupted_goes_on_and_only_one_fills() {
    let place = tempfile::tempdir().unwrap();
    let features = DiskFeatures::open(place.path(), rows(), None).unwrap();
    features.write(&[(2, states(2))]).unwrap();
    assert!(error(place.path()).contains("another training is filling it"));
    let made = features.directory().join("made.txt");
    drop(features); // killed
    let text = std::fs::read_to_string(&made).unwrap();
    for torn in ["0", "0:12"] {
        std::fs::write(&made, text.clone() + torn).unwrap(); // in the middle of a line
        drop(DiskFeatures::open(place.path(), rows(), None).unwrap());
        assert_eq!(std::fs::read_to_string(&made).unwrap(), text);
    }
    let features = DiskFeatures::open(place.path(), rows(), None).unwrap();
    assert_eq!((features.progress(), features.has(2), features.has(0)), ((1, 3), true, false));
    features.write(&[(0, states(0)), (1, states(1))]).unwrap();
    features.close().unwrap();
    drop(features);
    let features = DiskFeatures::open(place.path(), rows(), None).unwrap();
    assert!((0..3).all(|row| features.read(row).unwrap().equal(&states(row))));
}

#[test]
fn a_power_cut_costs_the_rows_that_it_tore() {
    let place = tempfile::tempdir().unwrap();
    let features = DiskFeatures::open(place.path(), rows(), None).unwrap();
    features.write(&[(0, states(0)), (1, states(1))]).unwrap();
    features.files.write_at(&[0; 8], features.offsets[1]).unwrap();
    drop(features); // not closed
    let features = DiskFeatures::open(place.path(), rows(), None).unwrap();
    assert_eq!((features.has(0), features.has(1)), (true, false));
    features.close().unwrap(); // before it was made again
    drop(features);
    let features = DiskFeatures::open(place.path(), rows(), None).unwrap();
    assert_eq!((features.has(0), features.has(1)), (true, false), "it stays forgotten");
    assert!(features.read(0).unwrap().equal(&states(0)));
}

#[test]
fn who_only_opens_leaves_no_trace() {
    let place = tempfile::tempdir().unwrap();
    drop(DiskFeatures::open(place.path(), rows(), None).unwrap());
    let features = DiskFeatures::open(place.path(), rows(), None).unwrap();
    features.write(&[(0, states(0))]).unwrap();
    features.close().unwrap();
    drop(features);
    drop(DiskFeatures::open(place.path(), rows(), None).unwrap()); // refused for another reason
    let features = DiskFeatures::open(place.path(), rows(), None).unwrap();
    assert!(!features.files.unclean() && features.has(0));
}

#[test]
fn damage_is_named() {
    let place = tempfile::tempdir().unwrap();
    let dir = filled(place.path());
    let path = dir.join("states.bin");
    let whole = std::fs::read(&path).unwrap();
    let mut bytes = whole.clone();
    bytes[20] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let text = error(place.path());
    assert!(text.contains("states.bin is damaged (row 1 is not what was written); remove "), "{text}");
    std::fs::write(&path, &whole[..40]).unwrap();
    assert!(error(place.path()).contains("it has 40 bytes, 48 were written"));
    std::fs::write(&path, &whole).unwrap();
    std::fs::write(dir.join("made.txt"), "0:zz\n").unwrap();
    assert!(error(place.path()).contains("made.txt is damaged (`0:zz` is no row and its checksum)"));
    std::fs::write(dir.join("manifest.json"), "{\"schema\": 9}").unwrap();
    assert!(error(place.path()).contains("has layout 9, this version reads 1"));
}

#[test]
fn other_states_lie_elsewhere_and_all_of_them_count() {
    let place = tempfile::tempdir().unwrap();
    filled(place.path());
    let other = Rows { key: ContentKey::new().text("x", "2").finish(), ..rows() };
    let error = DiskFeatures::open(place.path(), other.clone(), Some(95)).unwrap_err().to_string();
    assert!(error.contains(&rows().key.digest[..16]) && error.contains("[pipeline] feature_bytes allows"), "{error}");
    let features = DiskFeatures::open(place.path(), other, Some(96)).unwrap();
    assert_eq!(features.progress(), (0, 3));
}
