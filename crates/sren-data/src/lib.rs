//! Images for sren: bundled MNIST, image folders, transformed test sets.
