//! Many changes of a few files at once.

use std::collections::BTreeMap;

use super::*;

const FILES: usize = 10;
const CHANGES: u32 = 200;

/// The files as they must be after all changes that were sent so far.
#[derive(Default)]
struct Model(BTreeMap<String, Vec<u8>>);

impl Model {
    /// The next change, with the code of its final answer.
    async fn next(&mut self, site: &Site, number: u32) -> (Message, ResponseCode) {
        // Every file has all kinds in turn, in an order of its own.
        let file = number as usize * 7 % FILES;
        let id = format!("f{file}/x");
        let content = format!("content {number}").into_bytes();
        let known = self.0.get(&id).cloned();
        let believed = known.clone().unwrap_or_default();
        match (number / 3 + number) % 4 {
            0 | 1 => {
                let request = site.put_request(&id, &content).await.into();
                let code = known.as_ref().map_or(COMPLETED, |_| DUPLICATE);
                self.0.entry(id).or_insert(content);
                (request, code)
            }
            2 => {
                let request = site.replace_request(&id, &believed, &content).await.into();
                let code = known.as_ref().map_or(NOT_FOUND, |_| COMPLETED);
                if known.is_some() {
                    self.0.insert(id, content);
                }
                (request, code)
            }
            _ => {
                let request = site.delete_request(&id, &believed).into();
                let code = self.0.remove(&id).map_or(NOT_FOUND, |_| COMPLETED);
                (request, code)
            }
        }
    }
}

/// All are on their way before the first is answered; each file's are done in the order in which they were sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn u57_changes_of_ten_files_end_as_if_done_one_after_the_other() {
    let mut site = Site::open().await;
    let mut model = Model::default();
    let mut expected = BTreeMap::new();
    for number in 0..CHANGES {
        let (request, code) = model.next(&site, number).await;
        let correlation = request.header().correlation_id.clone();
        expected.insert(correlation.as_str().to_owned(), (number, code));
        site.send(request).await;
    }
    let mut done = 0;
    while !expected.is_empty() {
        let answer = site.next_answer().await;
        let code = code(&answer);
        if code == ACCEPTED {
            continue;
        }
        let correlation = answer.header().correlation_id.as_str();
        let (number, wanted) = expected.remove(correlation).unwrap();
        assert_eq!(code, wanted, "change {number}: {answer:?}");
        done += u64::from(code == COMPLETED);
    }
    for (id, content) in &model.0 {
        let row = site
            .index()
            .find(&"books".into(), &id.as_str().into())
            .await;
        assert_eq!(
            row.unwrap().unwrap().observed,
            md5_data(content).checksum_value
        );
    }
    let files = model.0.into_iter();
    let lying = site.lying("folderDir");
    let lying: Vec<_> = lying
        .into_iter()
        .filter(|(name, _)| !name.ends_with('/'))
        .collect();
    assert_eq!(lying, files.collect::<Vec<_>>());
    assert_eq!(site.lying("tmpDir"), []);
    let folders = fs::read_dir(site.directory.path().join("archive/books/folderDir"));
    assert_eq!(folders.unwrap().count(), lying.len());
    let trail = site.trail().await;
    let successes = trail
        .iter()
        .filter(|(action, _)| *action != FileAction::Failure);
    assert_eq!(successes.count() as u64, done);
    assert!(done > 60, "{done}");
    assert_eq!(
        site.index().count(&"books".into()).await.unwrap(),
        lying.len() as u64
    );
    assert_eq!(site.index().open_operations().await.unwrap(), []);
}
