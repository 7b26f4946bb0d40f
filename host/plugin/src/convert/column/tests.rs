use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    BinaryArray, BooleanArray, Decimal128Array, DurationMicrosecondArray, Int32Array, PrimitiveArray, StringArray,
};

use super::*;

fn column(array: impl Array + 'static) -> HostColumn {
    HostColumn::of(&(Arc::new(array) as ArrayRef)).unwrap()
}

fn offsets(column: &HostColumn) -> Vec<i32> {
    column.offsets.typed_data().to_vec()
}

#[test]
fn whole_columns_share_their_memory() {
    let array = Int32Array::from(vec![1, 2, 3]);
    let place = array.values().inner().as_ptr();
    let column = column(array);
    assert_eq!(column.data.as_ptr(), place);
    assert_eq!(&*column.data, [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
    assert!(column.validity.is_empty() && column.offsets.is_empty() && column.null_count == 0);
}

#[test]
fn a_slice_begins_at_its_first_row() {
    let array: PrimitiveArray<Int32Type> = (0..20).map(|i| (i % 3 != 0).then_some(i)).collect();
    let column = column(array.slice(5, 9));
    assert_eq!(column.data.typed_data::<i32>(), [5, 0, 7, 8, 0, 10, 11, 0, 13]);
    // Rows 6, 9, 12 are null: places 1, 4, 7 of the slice.
    assert_eq!(column.null_count, 3);
    assert_eq!(&*column.validity, [0b0110_1101, 0b0000_0001]);
}

#[test]
fn bits_are_moved_to_the_first_place() {
    let array = BooleanArray::from(vec![true, false, true, true, false, false, true, false, true, true]);
    let column = column(array.slice(3, 7));
    assert_eq!(&*column.data, [0b0110_1001]);
}

#[test]
fn texts_of_a_slice_are_counted_from_zero_and_bring_only_their_bytes() {
    let array = StringArray::from(vec![Some("ab"), None, Some("cde"), Some(""), Some("fg")]);
    let whole = column(array.clone());
    assert_eq!((offsets(&whole), &*whole.data), (vec![0, 2, 2, 5, 5, 7], &b"abcdefg"[..]));
    let tail = column(array.slice(2, 2));
    assert_eq!((offsets(&tail), &*tail.data, tail.null_count), (vec![0, 3, 3], &b"cde"[..], 0));
    let head = column(array.slice(0, 2));
    assert_eq!((offsets(&head), &*head.data, &*head.validity), (vec![0, 2, 2], &b"ab"[..], &[1][..]));
    let none = column(array.slice(5, 0));
    assert_eq!((offsets(&none), none.data.len()), (vec![0], 0));
}

#[test]
fn every_width_is_taken() {
    let decimals = Decimal128Array::from(vec![1, -1]).with_precision_and_scale(20, 2).unwrap();
    assert_eq!(column(decimals.slice(1, 1)).data.as_slice(), [0xff; 16]);
    assert_eq!(column(DurationMicrosecondArray::from(vec![7])).data.len(), 8);
    assert_eq!(column(BinaryArray::from(vec![&b"\0\xff"[..]])).data.as_slice(), b"\0\xff");
}

#[test]
fn a_type_that_is_not_of_the_contract_is_none() {
    let odd: ArrayRef = Arc::new(arrow_array::LargeStringArray::from(vec!["x"]));
    assert!(HostColumn::of(&odd).is_none());
    let odd: ArrayRef = Arc::new(arrow_array::NullArray::new(3));
    assert!(HostColumn::of(&odd).is_none());
}

#[test]
fn text_columns_hold_runs_and_nulls() {
    let mut column = TextColumn::with_capacity(4);
    assert!(column.push(2, Some("a:1")) && column.push(1, None) && column.push(1, Some("b")));
    let column = column.finish();
    assert_eq!((offsets(&column), &*column.data), (vec![0, 3, 6, 6, 7], &b"a:1a:1b"[..]));
    assert_eq!((column.null_count, &*column.validity), (1, &[0b1011][..]));
}
