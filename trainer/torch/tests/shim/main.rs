//! The shim over libtorch. What needs a GPU says that it was skipped where there is none.

mod absent;
mod allocator;
mod attention;
mod capture;
mod capture_gpu;
mod events;
mod fused;
mod gpus;
mod gradient;
mod group;
mod nccl;
mod optimizer;
mod ports;
mod streams;
mod support;
