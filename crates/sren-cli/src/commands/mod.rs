//! One module per command.

pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod equivariance;
pub(crate) mod eval;
pub(crate) mod export;
pub(crate) mod info;
pub(crate) mod man;
pub(crate) mod photograph_table;
pub(crate) mod pose;
pub(crate) mod pose_lemma;
pub(crate) mod predict;
pub(crate) mod serve;
pub(crate) mod stability;
pub(crate) mod table;
pub(crate) mod train;
pub(crate) mod visualize;
