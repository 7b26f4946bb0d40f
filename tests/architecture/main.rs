//! The rules of the house that a compiler does not know, each as a test.

mod tree;
