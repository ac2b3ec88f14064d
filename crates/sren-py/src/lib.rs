//! The native part of the Python package `sren`: conversions between NumPy arrays and the Rust
//! crates, threads, and errors.
//!
//! Every call gives the interpreter free while it computes, on a [pool] of threads of its own.
//! Errors of the crates become Python exceptions with the same text; so does a panic.

mod arrays;
mod compute;
mod datasets;
mod equivariance;
mod failure;
mod model;
mod pool;
mod pose;
mod runs;
mod simconv;
mod training;
mod watch;

use pyo3::prelude::*;

// A forward pass allocates and frees the same large arrays again and again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// mimalloc's option `purge_delay`, which the crate has no name for,
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
/// and how long freed memory is kept for the next array, in milliseconds.
const KEPT: std::ffi::c_long = 1000;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::datasets::{digits, test_digits};
    #[pymodule_export]
    use super::equivariance::equivariance_error;
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::pool::{get_num_threads, set_num_threads};
    #[pymodule_export]
    use super::pose::{PoseEstimator, pose_defaults};
    #[pymodule_export]
    use super::runs::{network_config, open_run, save_run};
    #[pymodule_export]
    use super::simconv::{simconv_backward, simconv_forward};
    #[pymodule_export]
    use super::training::{evaluate, resume, train};
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // SAFETY: an option that mimalloc reads when it next frees memory.
        unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, KEPT) };
        super::watch::install();
        module.add("BATCH", sren_lab::inference::Predictor::BATCH)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
