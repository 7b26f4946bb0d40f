//! Windows and scripted streams.
