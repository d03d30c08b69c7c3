//! File id patterns of settings in the wild, which mean what they mean in Java (U4).

use std::thread;

use crate::support::{
    process,
    site::{Site, free_port},
};

/// The patterns, with what Java says of [`NAMES`].
const PATTERNS: [(&str, &str); 6] = [
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

/// The names, but for those that the built-in limit refuses whatever the pattern says.
fn names() -> [(usize, String); 7] {
    [
        (0, "ab_1".to_owned()),
        (2, "A[z]".to_owned()),
        (4, "x".repeat(201)),
        (5, "name\u{a0}".to_owned()),
        (6, "x\u{2028}y".to_owned()),
        (7, "AB[z]x".to_owned()),
        (8, "dir/b_1".to_owned()),
    ]
}

/// A site whose repository has this pattern, and whose hub needs nothing else.
fn site(pattern: &str) -> Site {
    let site = Site::new(&["north"]);
    site.settings(
        "hub",
        &format!(
            "data = \"var\"\n[bus_server]\nlisten = [\"127.0.0.1:{}\"]\n",
            free_port()
        ),
    );
    let repository = site
        .repository()
        .replace("[bus]", &format!("file_id_pattern = '{pattern}'\n[bus]"));
    for part in ["hub", "client"] {
        std::fs::write(site.part(part).join("repository.toml"), &repository)
            .expect("can be written");
    }
    site
}

#[test]
fn u4_patterns_in_use_start_a_node_and_decide_as_java_does() {
    thread::scope(|scope| {
        for (pattern, table) in PATTERNS {
            scope.spawn(move || {
                let site = site(pattern);
                drop(site.start("hub"));
                for (column, name) in names() {
                    let fits = table.as_bytes()[column] == b'Y';
                    assert_eq!(is_accepted(&site, &name), fits, "{pattern}: {name:?}");
                }
            });
        }
    });
}

/// Whether a command with this id gets as far as looking for its file.
fn is_accepted(site: &Site, id: &str) -> bool {
    let output = site.run("put-file", ["-f", "nosuch", "-i", id]);
    let line = process::stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{line}");
    let (wrong_id, no_file) = (line.contains("file id"), line.contains("'nosuch'"));
    assert_ne!(wrong_id, no_file, "{line}");
    no_file
}

#[test]
fn u4_what_cannot_be_honored_is_named_at_start() {
    for (pattern, construct) in [
        (r"(?<!x)[a-z]+", "(?<!"),
        (r"(?=x)[a-z]+", "(?="),
        (r"(a)\1", "back-reference"),
        (r"[a-z]++", "possessive"),
        (r"(?>a|b)c", "(?>"),
        (r"\p{javaLowerCase}+", r"\p{"),
        (r"\G[a-z]+", r"\G"),
        (r"[a-z", "unclosed"),
        (r"(a", "unclosed"),
    ] {
        let site = site(pattern);
        let settings = site.part("hub");
        let output = process::run(["node".as_ref(), "-s".as_ref(), settings.as_os_str()]);
        let line = process::fail_with_one_line(&output, 1);
        assert!(line.contains("repository.toml:5:"), "{pattern}: {line}");
        assert!(line.contains("file_id_pattern"), "{pattern}: {line}");
        assert!(
            line.contains(construct),
            "{pattern}: '{construct}' is not in: {line}"
        );
    }
}
