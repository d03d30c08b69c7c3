use proptest::prelude::{any, prop_assert_eq, proptest};

use super::*;

/// The six patterns in use in public settings, and for nine names what Java's engine says to each.
const IN_USE: [(&str, &str); 6] = [
    (r"[a-zA-Z_\.\-0-9]{1,250}", "YYnnYnnnn"),
    (r"[a-zA-z0-9\-_.]{5,250}", "nnnnYnnYn"),
    (r"[a-zA-Z0-9\-_.\/]{5,250}", "nnnnYnnnY"),
    (r"[a-zA-Z/_\.\-0-9]+", "YYnnYnnnY"),
    (r"[a-zA-Z_\.\-0-9]+", "YYnnYnnnn"),
    (
        r"^[^ \./\p{Cntrl}][^\p{Cntrl}]{0,199}[^\s\p{Cntrl}]$",
        "YnYnYYYYY",
    ),
];

#[test]
fn patterns_in_use_mean_what_they_mean_in_java() {
    let long = "x".repeat(201);
    let names = [
        "ab_1",
        "a",
        "A[z]",
        "a\tb",
        &long,
        "name\u{A0}",
        "x\u{2028}y",
        "AB[z]x",
        "dir/b_1",
    ];
    for (pattern, expected) in IN_USE {
        let compiled = FileIdPattern::compile(pattern).unwrap();
        for (name, answer) in names.iter().zip(expected.chars()) {
            assert_eq!(
                compiled.matches(name),
                answer == 'Y',
                "{pattern} on {name:?}"
            );
        }
    }
}

#[test]
fn java_constructs() {
    for (pattern, text, expected) in [
        (r"a.c", "abc", true),
        (r"a.c", "a\u{85}c", false),
        (r"a.c", "a\u{2029}c", false),
        (r"\w+", "aé", false),
        (r"\d", "٣", false),
        (r"\S", "\u{A0}", true),
        (r"[\D]", "a", true),
        (r"[^\W_]+", "ab1", true),
        (r"[^\W_]+", "a_", false),
        (r"\Qa.b[\E+", "a.b[[", true),
        (r"a|bc", "bc", true),
        (r"a|bc", "abc", false),
        (r"(?<name>ab){2}", "abab", true),
        (r"[a-]", "-", true),
        (r"[0-9-_.]+", "1-_.", true),
        (r"[--/]", ".", true),
        (r"[a~~!--]+", "~-#", true),
        (r"[a[bc]d]+", "abcd", true),
        (r"[[:x:]]", ":", true),
        (r"[a#b &]+", "# &", true),
        (r"\x41\u0042\x{43}\0104\t", "ABCD\t", true),
        (r"\p{L}+", "äß", true),
        (r"\p{IsLu}\PLx", "Ä1x", true),
        (r"\p{Alpha}", "é", false),
        (r"\P{Alpha}", "é", true),
        (r"a]}", "a]}", true),
        (r"a+?b*?", "aab", true),
        (r"\ba\b", "a", true),
        (r"a\Z", "a", true),
        (r"[^x]", "\u{1F4BE}", true),
        (r"a\h?\R", "a\r\n", true),
        (r"\Aa\z", "a\n", false),
        (r"a$", "a\n", false),
    ] {
        let compiled = FileIdPattern::compile(pattern).unwrap();
        assert_eq!(compiled.matches(text), expected, "{pattern} on {text:?}");
    }
}

#[test]
fn refusals_name_the_construct() {
    for (pattern, says) in [
        ("(?=a)b", "look-ahead"),
        ("(?!a)b", "negative look-ahead"),
        ("(?<=a)b", "look-behind"),
        ("(?<!a)b", "negative look-behind"),
        ("(?>a)", "atomic group"),
        ("(?i)a", "inline flags"),
        (r"(a)\1", "back-reference"),
        (r"(?<n>a)\k<n>", "back-reference"),
        ("a++", "possessive quantifier"),
        ("a{1,2}+", "possessive quantifier"),
        ("[a-z&&[^b]]", "intersection"),
        (r"\p{javaLowerCase}", "property"),
        (r"\uD83D\uDCBE", "surrogate"),
        ("a**", "repetition of nothing"),
        ("*a", "repetition of nothing"),
        ("{1}", "repetition of nothing"),
        ("a{2,1}", "wrong order"),
        ("a{x}", "bad repetition"),
        ("[z-a]", "wrong order"),
        ("[a", "unclosed"),
        ("(a", "unclosed"),
        ("a)", "unmatched"),
        ("[]", "empty"),
        (r"\y", "unknown escape"),
        (r"a\", "backslash"),
    ] {
        let error = FileIdPattern::compile(pattern).unwrap_err().to_string();
        assert!(error.contains(says), "{pattern}: {error}");
    }
}

#[test]
fn hostile_patterns_are_refused_soon() {
    let repeated = "(".repeat(5) + "a" + &"{1000})".repeat(5);
    assert!(matches!(
        FileIdPattern::compile(&repeated),
        Err(PatternError::TooLarge { .. })
    ));
    assert!(FileIdPattern::compile(&"(".repeat(5000)).is_err());
    assert!(FileIdPattern::compile(&("[".repeat(100) + "a" + &"]".repeat(100))).is_err());
    assert!(FileIdPattern::compile(&("(".repeat(1000) + "a" + &")".repeat(1000))).is_err());
}

fn accept(id: &str) -> Result<ArchiveFileId, FileIdError> {
    ArchiveFileId::new(&id.into(), None)
}

#[test]
fn the_archive_keeps_to_itself() {
    for id in [
        "dir1/dir2/f.txt",
        "a..b",
        "v1..2/x",
        "dir/.hidden",
        "ab",
        "name\u{A0}",
        "a b",
    ] {
        assert_eq!(accept(id).unwrap().as_str(), id);
    }
    for (id, error) in [
        ("../up", FileIdError::Beginning('.')),
        ("/abs/x1", FileIdError::Beginning('/')),
        ("a/../b1", FileIdError::Traversal),
        ("a/..", FileIdError::Traversal),
        ("a../b", FileIdError::Traversal),
        (".hidden", FileIdError::Beginning('.')),
        (" a", FileIdError::Beginning(' ')),
        ("a ", FileIdError::End),
        ("a\u{7F}b", FileIdError::Control),
        ("a\0b", FileIdError::Control),
        ("ab\n", FileIdError::Control),
        ("a//b", FileIdError::Component("".into())),
        ("ab/", FileIdError::Component("".into())),
        ("a/./b", FileIdError::Component(".".into())),
        ("a", FileIdError::Length(1)),
        ("", FileIdError::Length(0)),
    ] {
        assert_eq!(accept(id), Err(error), "{id:?}");
    }
}

#[test]
fn lengths_count_utf16_units_and_bytes() {
    assert!(accept(&"x".repeat(252)).is_ok());
    assert_eq!(accept(&"x".repeat(253)), Err(FileIdError::Length(253)));
    // 63 characters, 126 units, 252 bytes.
    assert!(accept(&"\u{1F4BE}".repeat(63)).is_ok());
    assert_eq!(
        accept(&"\u{1F4BE}".repeat(64)),
        Err(FileIdError::ComponentLength(256))
    );
    assert_eq!(
        accept(&"\u{1F4BE}".repeat(127)),
        Err(FileIdError::Length(254))
    );
    assert!(accept(&format!("{}/{}", "é".repeat(127), "é".repeat(124))).is_ok());
}

#[test]
fn the_pattern_comes_on_top() {
    let pattern: FileIdPattern = "[a-z/.]+".parse().unwrap();
    let check = |id: &str| ArchiveFileId::new(&id.into(), Some(&pattern));
    let id = check("a/b.c").unwrap();
    assert!(id.is_in_folder());
    assert_eq!(id.components().collect::<Vec<_>>(), ["a", "b.c"]);
    assert_eq!(check("AB"), Err(FileIdError::Pattern("[a-z/.]+".into())));
    assert_eq!(check("a/../b"), Err(FileIdError::Traversal));
}

proptest! {
    #[test]
    fn no_pattern_panics(pattern in r"[\[\]\\(){}?*+|^$.,&a-z0-9-]{0,40}") {
        if let Ok(compiled) = FileIdPattern::compile(&pattern) {
            let _ = compiled.matches("a");
        }
    }

    #[test]
    fn any_quoted_text_matches_itself_alone(text in any::<String>(), other in any::<String>()) {
        let quoted = format!("\\Q{}\\E", text.replace("\\E", ""));
        let text = text.replace("\\E", "");
        let pattern = FileIdPattern::compile(&quoted).unwrap();
        prop_assert_eq!(pattern.matches(&text), true);
        prop_assert_eq!(pattern.matches(&other), text == other);
    }

    #[test]
    fn accepted_ids_stay_inside(text in any::<String>()) {
        if let Ok(id) = accept(&text) {
            prop_assert_eq!(id.components().all(|part| !matches!(part, "" | "." | "..")), true);
        }
    }
}
