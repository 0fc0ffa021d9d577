/// A draft that is to be judged, and what is known about it.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The draft.
    pub draft: &'a str,
    /// The version that it revises, if there is one.
    pub prior: Option<&'a str>,
    /// How often it was judged before without a readable verdict, so that a repeatable judge does not
    /// repeat itself.
    pub attempt: u32,
}
