//! Pages of long lists.

use rmcp::ErrorData;
use rmcp::model::PaginatedRequestParams;

/// The elements of one page.
const PAGE: usize = 100;

/// The page that a request asks for, and the cursor of the next one. A cursor is the number of elements before the page.
pub(crate) fn of<T>(
    all: Vec<T>,
    request: Option<&PaginatedRequestParams>,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let skip = match request.and_then(|request| request.cursor.as_deref()) {
        None => 0,
        Some(cursor) => cursor
            .parse::<usize>()
            .ok()
            .filter(|skip| *skip <= all.len())
            .ok_or_else(|| ErrorData::invalid_params("the cursor is not from this list", None))?,
    };
    let next = skip + PAGE;
    let cursor = (next < all.len()).then(|| next.to_string());
    Ok((all.into_iter().skip(skip).take(PAGE).collect(), cursor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(cursor: Option<&str>) -> Result<(Vec<usize>, Option<String>), ErrorData> {
        let request = PaginatedRequestParams::default().with_cursor(cursor.map(str::to_owned));
        of((0..150).collect(), Some(&request))
    }

    #[test]
    fn pages_follow_each_other() {
        let (first, next) = page(None).expect("a page");
        assert_eq!((first.len(), next.as_deref()), (100, Some("100")));
        let (second, next) = page(Some("100")).expect("a page");
        assert_eq!((second[0], second.len(), next), (100, 50, None));
    }

    #[test]
    fn a_foreign_cursor_is_refused() {
        for cursor in ["", "x", "-1", "151"] {
            assert!(page(Some(cursor)).is_err(), "{cursor}");
        }
    }
}
