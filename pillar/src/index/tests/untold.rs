//! What people are still to be told.

use super::*;

async fn untold(index: &Index) -> Vec<Trouble> {
    index.untold(&books(), &"".into()).await.unwrap()
}

async fn names(index: &Index) -> Vec<(String, bool)> {
    let troubles = untold(index).await.into_iter();
    troubles
        .map(|it| (it.row.file_id.to_string(), it.missing))
        .collect()
}

#[tokio::test]
async fn trouble_is_untold_until_somebody_has_told_it() {
    let fixture = Fixture::new();
    let index = fixture.open();
    let mut rows = Vec::new();
    for id in ["gone", "good", "rotten", "strange"] {
        rows.push(index.put(record("books", id)).await.unwrap().row);
    }
    let [gone, good, rotten, strange] = rows.try_into().unwrap();
    index.mark_missing(&books(), &gone).await.unwrap();
    index.mark_missing(&books(), &strange).await.unwrap();
    let right = observation(good.clone(), &[0x4a, 0x37], None);
    let wrong = observation(rotten.clone(), &[9], Some(entry("rotten")));
    index.observe(&books(), vec![right, wrong]).await.unwrap();
    // It is there again, but is another.
    index
        .adopt(&books(), vec![adoption("strange", &[8])])
        .await
        .unwrap();
    let expected = [("gone", true), ("rotten", false), ("strange", false)];
    let expected = expected.map(|(id, missing)| (id.to_owned(), missing));
    assert_eq!(names(&index).await, expected);
    index.close().await;

    let index = fixture.open();
    for trouble in untold(&index).await {
        index.told(&books(), trouble).await.unwrap();
    }
    assert_eq!(untold(&index).await, []);
    // Read again, and found as bad as it was known to be.
    let known = index
        .find(&books(), &"rotten".into())
        .await
        .unwrap()
        .unwrap();
    let same = observation(known.clone(), &[9], None);
    index.observe(&books(), vec![same]).await.unwrap();
    assert_eq!(untold(&index).await, []);
}

/// Whoever tells of one trouble has not told of the next.
#[tokio::test]
async fn what_has_become_of_a_file_since_is_untold_still() {
    let fixture = Fixture::new();
    let index = fixture.open();
    let row = index.put(record("books", "x1")).await.unwrap().row;
    let find = async || index.find(&books(), &"x1".into()).await.unwrap().unwrap();
    let first = observation(row, &[1], Some(entry("x1")));
    index.observe(&books(), vec![first]).await.unwrap();
    let old = untold(&index).await.remove(0);
    let second = observation(find().await, &[2], Some(entry("x1")));
    index.observe(&books(), vec![second]).await.unwrap();
    index.told(&books(), old.clone()).await.unwrap();
    assert_eq!(names(&index).await, [("x1".to_owned(), false)]);
    index.mark_missing(&books(), &find().await).await.unwrap();
    index.told(&books(), old).await.unwrap();
    assert_eq!(names(&index).await, [("x1".to_owned(), true)]);
    // A new file has none of its troubles.
    index.put(record("books", "x1")).await.unwrap();
    assert_eq!(untold(&index).await, []);
    let wrong = observation(find().await, &[3], Some(entry("x1")));
    index.observe(&books(), vec![wrong]).await.unwrap();
    let right = observation(find().await, &[0x4a, 0x37], Some(entry("x1")));
    index.observe(&books(), vec![right]).await.unwrap();
    assert_eq!(untold(&index).await, []);
}
