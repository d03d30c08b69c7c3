//! Directories that a power cut does not take away.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

/// Makes a directory with all above it, each of them certain to stay: what is kept in it is worth no more. Its own
/// name is made certain also if it was there, since whoever made it may have been killed before that.
///
/// # Errors
/// One can't be made, or synced; a directory above one that was there need not be readable.
pub fn make_directory(path: &Path) -> io::Result<()> {
    let above = match path.parent() {
        Some(above) if above.as_os_str().is_empty() => Path::new("."),
        Some(above) => above,
        None => return Ok(()),
    };
    let was_there = path.is_dir();
    if !was_there {
        make_directory(above)?;
        match fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists || !path.is_dir() => {
                return Err(error);
            }
            _ => {}
        }
    }
    match File::open(above).and_then(|above| above.sync_all()) {
        // Whoever may not look into it has not made the name either.
        Err(error) if was_there && error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_above_is_made_and_a_file_is_in_the_way() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a/b/c");
        for _ in 0..2 {
            make_directory(&path).unwrap();
            assert!(path.is_dir());
        }
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        for path in [file.clone(), file.join("below")] {
            make_directory(&path).unwrap_err();
        }
    }
}
