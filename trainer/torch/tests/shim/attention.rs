//! Which of libtorch's attention kernels are taken. The CPU knows `math` and `flash`.

use crate::support::whole_libtorch;
use dflash_torch::{AttentionKernels, allow_attention, allowed_attention};
use tch::{Device, Kind, Tensor};

fn attend(q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor, tch::TchError> {
    Tensor::f_scaled_dot_product_attention(q, k, v, None::<Tensor>, 0.0, true, None, false)
}

#[test]
fn libtorch_takes_what_it_is_allowed_and_nothing_else() {
    whole_libtorch();
    assert_eq!(allowed_attention().unwrap(), AttentionKernels::ALL, "as libtorch begins");
    tch::manual_seed(5);
    let [q, k, v] = [(); 3].map(|()| Tensor::randn([2, 3, 19, 16], (Kind::Float, Device::Cpu)));
    let any = attend(&q, &k, &v).unwrap();
    let none = AttentionKernels::NONE;
    for kernels in [AttentionKernels { math: true, ..none }, AttentionKernels { flash: true, math: true, ..none }] {
        allow_attention(kernels).unwrap();
        assert_eq!(allowed_attention().unwrap(), kernels);
        let far = (attend(&q, &k, &v).unwrap() - &any).abs().max().double_value(&[]);
        assert!(far < 1e-5, "{kernels:?}: {far}");
    }
    for kernels in [none, AttentionKernels { cudnn: true, ..none }, AttentionKernels { efficient: true, ..none }] {
        allow_attention(kernels).unwrap();
        assert!(attend(&q, &k, &v).is_err(), "{kernels:?}");
    }
    allow_attention(AttentionKernels::ALL).unwrap();
    assert_eq!(attend(&q, &k, &v).unwrap(), any);
}
