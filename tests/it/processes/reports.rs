//! What pillars tell of themselves: audit trails (U22) and statuses.

use serde_json::Value;

use super::json::objects;
use crate::support::{
    process::{self, fail_with_one_line, stderr, stdout, succeed},
    site::Site,
};

const MD5: &str = "2b0442658d8c004c5628c740b6f17c59";
const HEADING: &str = "Contributor: \tNumber: \tTime: \tAction: \tActor: \tFileID: \tOperationID: \tInfo: \tAuditInformation:";

/// A site whose two pillars have stored `hello.txt`, `a.txt` and `b.txt`, of which north has deleted `a.txt`.
fn site() -> (Site, Vec<process::Running>) {
    let site = Site::new(&["north", "south"]);
    let parts = ["hub", "north", "south"].map(|part| site.start(part));
    site.file("hello.txt", b"hello bitrepository\n");
    for id in ["hello.txt", "a.txt", "b.txt"] {
        succeed(&site.run("put-file", ["-f", "hello.txt", "-i", id]));
    }
    succeed(&site.run("delete-file", ["-i", "a.txt", "-p", "north", "-C", MD5]));
    (site, parts.into())
}

/// Audit trail events as (pillar, number, action, file), sorted, of these arguments.
fn told(site: &Site, args: &[&str]) -> Vec<(String, u64, String, String)> {
    let output = site.run("get-audit-trails", args.iter().chain(&["--json"]));
    let mut told: Vec<_> = objects(&succeed(&output)).iter().map(event).collect();
    told.sort();
    told
}

fn event(line: &Value) -> (String, u64, String, String) {
    let text = |name: &str| line[name].as_str().expect(name).to_owned();
    let number = line["number"].as_u64().expect("a number");
    (text("pillar"), number, text("action"), text("file_id"))
}

#[test]
fn audit_trails_by_pillar_number_file_and_time() {
    let (site, _parts) = site();
    let put = |pillar: &str, number, id: &str| {
        (
            pillar.to_owned(),
            number,
            "PUT_FILE".to_owned(),
            id.to_owned(),
        )
    };
    let of_north = vec![
        put("north", 1, "hello.txt"),
        put("north", 2, "a.txt"),
        put("north", 3, "b.txt"),
        (
            "north".to_owned(),
            4,
            "DELETE_FILE".to_owned(),
            "a.txt".to_owned(),
        ),
    ];
    let of_south = vec![
        put("south", 1, "hello.txt"),
        put("south", 2, "a.txt"),
        put("south", 3, "b.txt"),
    ];
    let all = [of_north.clone(), of_south.clone()].concat();
    assert_eq!(told(&site, &[]), all);
    assert_eq!(told(&site, &["-p", "north", "-p", "south"]), all);
    assert_eq!(told(&site, &["--max-page-size", "1"]), all);
    assert_eq!(told(&site, &["-p", "south"]), of_south);
    assert_eq!(
        told(&site, &["-p", "north", "--first", "2", "--last", "3"]),
        of_north[1..3]
    );
    let of_a = [
        of_north[1].clone(),
        of_north[3].clone(),
        of_south[1].clone(),
    ];
    assert_eq!(told(&site, &["-i", "a.txt"]), of_a);
    let now = ["--min-time", "2024-01-31T23:59:59.999+01:00"];
    assert_eq!(told(&site, &now), all);
    assert_eq!(told(&site, &["--max-time", "2024-01-31T23:59:59.999Z"]), []);
    assert_eq!(told(&site, &["--min-time", "9999-01-01T00:00:00Z"]), []);
}

#[test]
fn audit_trails_for_people_and_programs() {
    let (site, _parts) = site();
    let table = succeed(&site.run("get-audit-trails", ["-p", "north", "--first", "4"]));
    let lines: Vec<&str> = table.lines().collect();
    let [heading, row] = lines[..] else {
        panic!("{table}")
    };
    assert_eq!(heading, HEADING);
    let cells: Vec<&str> = row.split(" \t").collect();
    assert_eq!(cells.len(), 9, "{row}");
    assert_eq!((cells[0], cells[1]), ("north", "4"));
    assert_eq!((cells[3], cells[5]), ("DELETE_FILE", "a.txt"));

    let output = site.run(
        "get-audit-trails",
        ["-p", "north", "--first", "4", "--json"],
    );
    let told = objects(&succeed(&output));
    let names: Vec<&String> = told[0].as_object().expect("an object").keys().collect();
    let mut known = [
        "pillar",
        "number",
        "time",
        "action",
        "actor",
        "file_id",
        "operation_id",
        "info",
        "audit_information",
        "certificate_id",
        "reporting_component",
    ];
    known.sort_unstable();
    assert_eq!(names, known);
    assert_eq!(told[0]["time"], cells[2]);
    assert_eq!(told[0]["actor"], cells[4]);
    assert_eq!(told[0]["operation_id"], cells[6]);
    assert_eq!(told[0]["reporting_component"], "north");
}

#[test]
fn statuses_of_all_that_answer() {
    let site = Site::with_timeouts(&["north", "south"], "2s", "20s");
    let mut parts = ["hub", "north", "south"].map(|part| site.start(part));
    let status = |args: &[&str]| site.without_collection("get-status", args);
    let table = succeed(&status(&[]));
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("Component: \tCode: \tTime: \tText:"));
    let mut rows: Vec<Vec<&str>> = lines.map(|row| row.split(" \t").collect()).collect();
    rows.sort();
    let [north, south] = &rows[..] else {
        panic!("{table}")
    };
    for (row, pillar) in [(north, "north"), (south, "south")] {
        let [component, code, time, text] = row[..] else {
            panic!("{row:?}")
        };
        assert_eq!(component, pillar);
        assert!(["OK", "WARNING", "ERROR"].contains(&code), "{row:?}");
        assert!(time.ends_with('Z') && !text.is_empty(), "{row:?}");
    }
    let told = objects(&succeed(&status(&["-p", "south", "--json"])));
    let names: Vec<&String> = told[0].as_object().expect("an object").keys().collect();
    assert_eq!(names, ["code", "pillar", "text", "time"]);
    assert_eq!((told.len(), &told[0]["pillar"]), (1, &Value::from("south")));

    parts[2].kill();
    let output = status(&["--json"]);
    let line = fail_with_one_line(&output, 255);
    assert!(line.contains("south"), "{line}");
    let told = objects(&stdout(&output));
    let [north, south] = &told[..] else {
        panic!("{told:?}\n{}", stderr(&output))
    };
    assert_eq!(north["pillar"], "north");
    assert_eq!(
        (&south["failed"], &south["pillar"]),
        (&Value::from(true), &Value::from("south"))
    );
}
