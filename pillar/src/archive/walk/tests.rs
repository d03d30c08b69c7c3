use std::os::unix::{ffi::OsStrExt, net::UnixListener};

use proptest::prelude::*;

use super::*;

fn tree(base: &Path, kind: TreeKind) -> Tree {
    let tree = Tree::new(Path::new("/archive"), base, kind);
    fs::create_dir_all(&tree.root).unwrap();
    tree
}

/// All of it, by walks that hold few names, the first ending after so many portions.
fn ids(tree: &Tree, after: &str, portions: usize) -> Vec<String> {
    let mut walk = Walk::after(tree.clone(), after);
    walk.limits = Limits {
        files: 3,
        first_folders: 2,
        folders: 1,
    };
    let mut ids = Vec::new();
    for _ in 0..portions {
        let Some(found) = walk.next(|_| Ok::<_, io::Error>(())).unwrap() else {
            break;
        };
        ids.extend(found.into_iter().filter_map(|found| match found {
            Found::File(id) => Some(id.as_str().to_owned()),
            Found::Stray(..) => None,
        }));
    }
    ids
}

fn create(root: &Path, id: &str) {
    let path = root.join(id);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // A name may be a file here and a folder there.
    _ = fs::write(path, b"");
}

#[test]
fn what_has_no_place_is_told_apart_and_never_followed() {
    let dir = tempfile::tempdir().unwrap();
    let outside = dir.path().join("outside");
    create(&outside, "a/secret");
    let files = tree(dir.path(), TreeKind::Files);
    create(&files.root, "good");
    create(&files.root, "x");
    create(&files.root, ".hidden");
    create(&files.root, "folder/in-it");
    fs::write(files.root.join(OsStr::from_bytes(b"\xff\xfe")), b"").unwrap();
    std::os::unix::fs::symlink(outside.join("a/secret"), files.root.join("link")).unwrap();
    let _socket = UnixListener::bind(files.root.join("socket")).unwrap();
    let folders = tree(dir.path(), TreeKind::Folders);
    create(&folders.root, "flat");
    create(&folders.root, "a/good");
    std::os::unix::fs::symlink(&outside, folders.root.join("link")).unwrap();
    let mut said = Vec::new();
    for tree in [files, folders] {
        let mut walk = Walk::after(tree, "");
        while let Some(found) = walk.next(|_| Ok::<_, io::Error>(())).unwrap() {
            said.extend(found.into_iter().map(|found| match found {
                Found::File(id) => id.as_str().to_owned(),
                Found::Stray(path, why) => {
                    let path = path.strip_prefix(dir.path()).unwrap();
                    format!("{}: {why}", path.display())
                }
            }));
        }
    }
    assert_eq!(
        said,
        [
            "fileDir/.hidden: the file id must not begin with '.'",
            "fileDir/folder: a directory has no place here",
            "good",
            "fileDir/link: links are not followed",
            "fileDir/socket: it is no regular file",
            "fileDir/x: the file id has 1 character, allowed are 2 to 252",
            "fileDir/\u{fffd}\u{fffd}: its name is not UTF-8",
            "folderDir/flat: a file without folder has its place in fileDir",
            "folderDir/link: links are not followed",
            "a/good",
        ]
    );
}

#[test]
fn a_walk_ends_when_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let files = tree(dir.path(), TreeKind::Files);
    create(&files.root, "good");
    let mut walk = Walk::after(files, "");
    let stopped = walk.next(|_| Err(io::Error::from(io::ErrorKind::Interrupted)));
    assert_eq!(stopped.unwrap_err().kind(), io::ErrorKind::Interrupted);
}

/// A folder that can't be read keeps nobody from the others.
#[test]
fn a_folder_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let folders = tree(dir.path(), TreeKind::Folders);
    for id in ["aa/good", "bb/cc/bad", "bb/good", "dd/good"] {
        create(&folders.root, id);
    }
    let mut walk = Walk::after(folders, "");
    let (mut found, mut skipped, mut looks) = (Vec::new(), Vec::new(), 0);
    loop {
        let next = walk.next(|_| {
            looks += 1;
            // The files and folders of the root, of aa, of bb: the next are those of bb/cc.
            match looks {
                7 => Err(io::ErrorKind::PermissionDenied),
                _ => Ok(()),
            }
            .map_err(io::Error::from)
        });
        match next {
            Ok(Some(some)) => found.extend(some.into_iter().map(|it| match it {
                Found::File(id) => id.as_str().to_owned(),
                Found::Stray(path, why) => panic!("{path:?}: {why}"),
            })),
            Ok(None) => break,
            Err(_) => {
                skipped.push(walk.path());
                walk.skip_folder();
            }
        }
    }
    assert_eq!(found, ["aa/good", "bb/good", "dd/good"]);
    assert_eq!(skipped, [dir.path().join("folderDir/bb/cc")]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Every file once, however the walk is cut, and although folders come and go where it was cut.
    #[test]
    fn a_walk_goes_on_where_it_was(
        names in prop::collection::btree_set("(aa|bb|a-a|[ab]{1,2}/(cc|dd/)?[e-h]{2})", 1..40),
        portions in 1_usize..12,
    ) {
        let dir = tempfile::tempdir().unwrap();
        for kind in [TreeKind::Files, TreeKind::Folders] {
            let tree = tree(dir.path(), kind);
            for name in names.iter().filter(|name| name.contains('/') == (kind == TreeKind::Folders)) {
                create(&tree.root, name);
            }
            let all = ids(&tree, "", usize::MAX);
            let mut standing: Vec<_> = names.iter().filter(|name| tree.root.join(name).is_file()).collect();
            standing.retain(|name| name.contains('/') == (kind == TreeKind::Folders));
            prop_assert_eq!(standing.len(), all.len());
            let first = ids(&tree, "", portions);
            let after = first.last().cloned().unwrap_or_default();
            if let Some(last) = first.last() {
                fs::remove_file(tree.root.join(last)).unwrap();
            }
            let rest = ids(&tree, &after, usize::MAX);
            prop_assert_eq!([first, rest].concat(), all);
        }
    }
}
