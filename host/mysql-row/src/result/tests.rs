use super::*;

/// The bytes of a value, all of which must be taken.
fn whole<T>(bytes: &[u8], read: impl Fn(&mut &[u8]) -> Result<T, ValueError>) -> Result<T, ValueError> {
    let mut rest = bytes;
    let value = read(&mut rest)?;
    assert_eq!(rest, [0_u8; 0], "bytes are left");
    Ok(value)
}

/// Every shorter form of the bytes must be refused, not read beyond.
fn refuses_all_shorter<T>(bytes: &[u8], read: impl Fn(&mut &[u8]) -> Result<T, ValueError>) {
    for length in 0..bytes.len() {
        assert!(read(&mut &bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
    }
}

#[test]
fn moments_leave_out_fields_that_are_zero_at_the_end() {
    let day = Day { year: 2024, month: 2, day: 29 };
    let clock = Clock { hour: 23, minute: 59, second: 58, micro: 0 };
    assert_eq!(whole(&[4, 0xe8, 7, 2, 29], moment), Ok((day, Clock::default())));
    assert_eq!(whole(&[7, 0xe8, 7, 2, 29, 23, 59, 58], moment), Ok((day, clock)));
    let with_micros = [11, 0xe8, 7, 2, 29, 23, 59, 58, 0x3f, 0x42, 0x0f, 0];
    assert_eq!(whole(&with_micros, moment), Ok((day, Clock { micro: 999_999, ..clock })));
    refuses_all_shorter(&with_micros, moment);
    assert_eq!(whole(&[0], moment), Ok((Day { year: 0, month: 0, day: 0 }, Clock::default())));
    assert_eq!(whole(&[5, 0xe8, 7, 2, 29, 1], moment), Err(ValueError::Malformed("date")));
}

#[test]
fn times_have_a_sign_and_days() {
    assert_eq!(whole(&[0], time), Ok(0));
    // -838:59:59 is 34 days and 22 hours.
    let least = [8, 1, 34, 0, 0, 0, 22, 59, 59];
    assert_eq!(whole(&least, time), Ok(-(838 * 3600 + 59 * 60 + 59) * 1_000_000));
    let with_micros = [12, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0];
    assert_eq!(whole(&with_micros, time), Ok((3600 + 2 * 60 + 3) * 1_000_000 + 4));
    refuses_all_shorter(&with_micros, time);
    assert_eq!(whole(&[8, 0, 255, 255, 255, 255, 0, 0, 0], time), Err(ValueError::Malformed("time")));
    assert_eq!(whole(&[3, 0, 0, 0], time), Err(ValueError::Malformed("time")));
}

#[test]
fn lengths_have_four_forms() {
    let value = vec![b'x'; 300];
    let behind = |head: &[u8]| [head, &value].concat();
    for head in [&[252, 44, 1][..], &[253, 44, 1, 0], &[254, 44, 1, 0, 0, 0, 0, 0, 0]] {
        let bytes = behind(head);
        assert_eq!(whole(&bytes, |rest| length_coded(rest).map(<[u8]>::len)), Ok(300), "{head:?}");
        refuses_all_shorter(&bytes, |rest| length_coded(rest).map(<[u8]>::len));
    }
    assert_eq!(length_coded(&mut &[2, b'a', b'b'][..]), Ok(&b"ab"[..]));
    assert_eq!(length_coded(&mut &[251, 0][..]), Err(ValueError::Malformed("length")));
    assert_eq!(length_coded(&mut &[254, 255, 255, 255, 255, 255, 255, 255, 255][..]), Err(ValueError::Short));
}
