//! Test executables find libtorch without LD_LIBRARY_PATH, and its kernels run.

use tch::{Device, Kind, Tensor};

#[test]
fn multiplies_in_bf16_on_the_cpu() {
    let a = Tensor::ones([3, 5], (Kind::BFloat16, Device::Cpu));
    let b = Tensor::full([5, 2], 2.0, (Kind::BFloat16, Device::Cpu));
    let product = a.matmul(&b);
    assert_eq!(product.kind(), Kind::BFloat16);
    assert_eq!(product.to_kind(Kind::Float), Tensor::full([3, 2], 10.0, (Kind::Float, Device::Cpu)));
}
