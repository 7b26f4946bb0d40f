//! A live server against its lake, value by value, by two readers that other people wrote.
#![cfg(test)]

mod atomicity;
mod bucket;
mod ends;
mod shapes;
mod values;
