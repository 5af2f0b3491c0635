//! Numbers of JSON stay what they are (`proto/json`), and half a surrogate pair is no reason to lose a document.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Number, Value, json};

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn what_no_type_holds_is_kept_as_its_text() {
    for text in [
        "18446744073709551616",
        "-9223372036854775809",
        "123456789012345678901234567890",
        "0.1000000000000000055511151231257827",
        "9007199254740993.0",
        "1e-400",
        "-0.0",
        "1.0",
        "31.245270191439438",
        r#"[1,{"a":-99999999999999999999}]"#,
    ] {
        assert_eq!(read(text).to_string(), text);
        assert_eq!(serde_json::to_value(read(text)).expect("a value"), read(text), "{text}");
    }
}

#[test]
fn other_numbers_are_as_before() {
    assert_eq!(read("1e2"), json!(100.0));
    assert_eq!(read("1.10"), json!(1.1));
    assert_ne!(read("1.0"), json!(1));
    assert_eq!((read("18446744073709551615").as_u64(), read("-1").as_i64()), (Some(u64::MAX), Some(-1)));
    assert_eq!(read("18446744073709551616").as_f64(), Some(18_446_744_073_709_551_616.0));
    assert!(serde_json::from_str::<Value>("1e400").is_err(), "beyond the range of most readers");
    assert_eq!(serde_json::from_value::<u128>(read("18446744073709551616")).ok(), Some(1 << 64));
    assert!(serde_json::from_value::<u64>(read("18446744073709551616")).is_err());
}

#[test]
fn a_document_cannot_hold_private_keys() {
    for text in [r#"{"$serde_json::private::Number":"12"}"#, r#"{"$serde_json::private::RawValue":"[1]"}"#] {
        assert_eq!(read(text).to_string(), text);
        assert!(serde_json::from_str::<Number>(text).is_err());
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Flat {
    known: u64,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Share { share: f64 },
    Any(Value),
}

#[test]
fn buffers_of_serde_pass_numbers_on() {
    let text = r#"{"known":1,"half":0.50,"long":123456789012345678901234567890}"#;
    let flat: Flat = serde_json::from_str(text).expect("read");
    assert_eq!(flat, serde_json::from_value(read(text)).expect("read"));
    let written = serde_json::to_string(&flat).expect("written");
    assert_eq!(written, r#"{"known":1,"half":0.5,"long":123456789012345678901234567890}"#);
    assert_eq!(serde_json::from_str::<Untagged>(r#"{"share":0.50}"#).expect("read"), Untagged::Share { share: 0.5 });
    let any: Untagged = serde_json::from_str("[99999999999999999999]").expect("read");
    assert_eq!(any, Untagged::Any(read("[99999999999999999999]")));
    let raw: Box<RawValue> = serde_json::from_str("99999999999999999999").expect("read");
    assert_eq!(raw.get(), "99999999999999999999");
}

#[test]
fn half_a_surrogate_pair_is_a_replacement_character() {
    for (text, meant) in [
        (r#""\ud83d""#, "\u{fffd}"),
        (r#""a\ud83dz""#, "a\u{fffd}z"),
        (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
        (r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
        (r#""\ud83d\n""#, "\u{fffd}\n"),
        (r#""\ud83d\u0041""#, "\u{fffd}A"),
        (r#""\ud83d\\ud83d""#, "\u{fffd}\\ud83d"),
    ] {
        assert_eq!(serde_json::from_str::<Value>(text).expect(text), json!(meant));
        assert_eq!(serde_json::from_slice::<String>(text.as_bytes()).expect(text), meant);
        assert_eq!(serde_json::from_reader::<_, String>(text.as_bytes()).expect(text), meant);
    }
    for cut in [r#""\ud83d"#, r#""\ud83d\"#, r#""\ud83d\u12"#] {
        assert!(serde_json::from_str::<Value>(cut).is_err(), "{cut}");
    }
}

/// The digits of a number without what does not count, and the power of ten of the first of them.
fn parts(text: &str) -> (bool, String, i64) {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let kept = digits.trim_start_matches('0');
    if kept.is_empty() {
        return (negative, String::new(), 0);
    }
    let power = exponent.parse::<i64>().expect("an exponent") + whole.len() as i64 - (digits.len() - kept.len()) as i64;
    (negative, kept.trim_end_matches('0').to_owned(), power)
}

proptest! {
    #[test]
    fn every_number_keeps_its_value(
        text in "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?",
    ) {
        let printed = read(&text).to_string();
        prop_assert_eq!(parts(&printed), parts(&text), "{} became {}", text, printed);
        // Printed once, a number is not changed any more.
        prop_assert_eq!(read(&printed).to_string(), printed);
    }
}
