//! Scale and rotation equivariant networks for Burn.
