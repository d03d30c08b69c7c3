//! Disks that are not there for a while: nothing is taken for lost, and nothing that they hide is overwritten.

use std::fs;

use crate::support::{
    process,
    site::{Site, files_below},
};

/// Three processes: hub, pillar north, and whoever runs the command.
fn site_with_a_file() -> (Site, process::Running) {
    let site = Site::new(&["north"]);
    let hub = site.start("hub");
    let file = site.file("hello.txt", b"hello\n");
    let mut north = site.start("north");
    process::succeed(&site.run("put-file", ["-f".as_ref(), file.as_os_str()]));
    north.terminate();
    north.wait_for_success();
    (site, hub)
}

#[test]
fn a_pillar_whose_archive_is_not_mounted_does_not_start() {
    let (site, _hub) = site_with_a_file();
    let (archive, away) = (site.part("north").join("archive"), site.part("away"));
    fs::rename(&archive, &away).unwrap();
    fs::create_dir(&archive).unwrap();
    let settings = site.part("north");
    let output = process::run(["node".as_ref(), "-s".as_ref(), settings.as_os_str()]);
    assert_eq!(output.status.code(), Some(1));
    let text = process::stderr(&output);
    let line = text.lines().last().unwrap();
    assert!(
        line.contains("the index lists files of collection 'books'"),
        "{text}"
    );
    assert!(line.contains("mount its disk"), "{text}");

    fs::remove_dir_all(&archive).unwrap();
    fs::rename(&away, &archive).unwrap();
    let _north = site.start("north");
    let listing = process::succeed(&site.run("get-file-ids", ["-i", "hello.txt"]));
    assert_eq!(listing, "Count: \tSize: \tFileID:\n1 \t6 \thello.txt\n");
}

#[test]
fn a_disk_that_goes_away_and_comes_back_has_lost_nothing() {
    let (site, _hub) = site_with_a_file();
    let _north = site.start("north");
    let (archive, away) = (site.part("north").join("archive"), site.part("away"));
    fs::rename(&archive, &away).unwrap();
    let target = site.path().join("copy");
    let get = || {
        site.run(
            "get-file",
            [
                "-i".as_ref(),
                "hello.txt".as_ref(),
                "-l".as_ref(),
                target.as_os_str(),
            ],
        )
    };
    let line = process::fail_with_one_line(&get(), 255);
    assert!(!line.contains("FILE_NOT_FOUND"), "{line}");
    fs::rename(&away, &archive).unwrap();
    process::succeed(&get());
    assert_eq!(fs::read(&target).unwrap(), b"hello\n");
}

#[test]
fn a_file_that_the_index_does_not_know_is_kept_when_another_takes_its_place() {
    let (site, _hub) = site_with_a_file();
    let known = site.archive("north").join("fileDir/hello.txt");
    fs::remove_file(&known).unwrap();
    let mut north = site.start("north");
    north.wait_for_error("were compared");
    // Long after the start, long before the next look.
    fs::write(&known, b"hello\n").unwrap();
    let other = site.file("other.txt", b"another\n");
    let put = [
        "-f".as_ref(),
        other.as_os_str(),
        "-i".as_ref(),
        "hello.txt".as_ref(),
    ];
    process::succeed(&site.run("put-file", put));
    let archived = files_below(&site.archive("north"));
    let contents: Vec<(String, Vec<u8>)> = archived
        .iter()
        .map(|path| {
            let place = path.strip_prefix(site.archive("north")).unwrap();
            (place.display().to_string(), fs::read(path).unwrap())
        })
        .collect();
    assert_eq!(
        contents,
        [
            ("fileDir/hello.txt".to_owned(), b"another\n".to_vec()),
            ("retainDir/hello.txt".to_owned(), b"hello\n".to_vec()),
        ]
    );
}

#[test]
fn get_file_takes_no_link_for_a_file() {
    let (site, _hub) = site_with_a_file();
    let link = site.path().join("link");
    std::os::unix::fs::symlink("/dev/stdout", &link).unwrap();
    let get = [
        "-i".as_ref(),
        "hello.txt".as_ref(),
        "-l".as_ref(),
        link.as_os_str(),
    ];
    let line = process::fail_with_one_line(&site.run("get-file", get), 1);
    assert!(line.contains("it is a link"), "{line}");
    assert!(link.is_symlink());
}
