//! The items of a map node.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::branch::{Begun, View, begin, finish, item_result};
use super::fault::Fault;
use super::work::{Effect, Note, WorkId};
use super::{Branch, Run};
use crate::graph::{Kind, MapNode, OnItemError};

/// The items of a map under way.
#[derive(Debug)]
pub(super) struct Items {
    items: Vec<Value>,
    /// The results by the place of the item.
    results: BTreeMap<usize, Result<Value, Fault>>,
    /// The places of those that are under way.
    running: Vec<usize>,
    next: usize,
    limit: usize,
}

impl Items {
    pub(super) fn new(items: Vec<Value>, limit: usize) -> Self {
        Self { items, results: BTreeMap::new(), running: Vec::new(), next: 0, limit }
    }

    pub(super) fn running(&self) -> impl Iterator<Item = usize> {
        self.running.iter().copied()
    }

    /// Begins no further items.
    pub(super) fn stop(&mut self) {
        self.items.truncate(self.next);
    }

    /// The next item, if there is room for it.
    fn take(&mut self) -> Option<(usize, Value)> {
        let place = self.next;
        let item = self.items.get(place).filter(|_| self.running.len() < self.limit)?.clone();
        self.next += 1;
        self.running.push(place);
        Some((place, item))
    }

    fn put(&mut self, place: usize, result: Result<Value, Fault>) {
        self.running.retain(|running| *running != place);
        self.results.insert(place, result);
    }

    /// The list of results, once there are all of them.
    fn collected(&mut self, rule: Option<OnItemError>) -> Option<Result<Value, Fault>> {
        if self.results.len() < self.items.len() {
            return None;
        }
        let mut list = Vec::with_capacity(self.results.len());
        for (place, result) in std::mem::take(&mut self.results) {
            match (result, rule) {
                (Ok(value), _) => list.push(value),
                (Err(_), Some(OnItemError::Null)) => list.push(Value::Null),
                (Err(_), Some(OnItemError::Skip)) => {}
                (Err(fault), Some(OnItemError::Fail) | None) => {
                    return Some(Err(Fault::new(fault.kind, format!("item {place}: {}", fault.text))));
                }
            }
        }
        Some(Ok(Value::Array(list)))
    }
}

impl Run {
    /// Begins items of a map as long as there is room, and ends the map when all are over.
    pub(super) fn go_on_items(&mut self, id: &str, effects: &mut Vec<Effect>) {
        let graph = Arc::clone(&self.graph);
        let Some(node) = graph.node(id) else { return };
        let Kind::Map(map) = &node.kind else { return };
        let Some(branch) = graph.node(&map.branch) else { return };
        while let Some((place, item)) = self.items(id).and_then(Items::take) {
            let work = WorkId { step: self.next.step, node: id.to_owned(), item: Some(place), asked: 0 };
            match begin(&graph, branch, &self.item_view(map, item)) {
                Ok(Begun::Task(task)) => self.start(work, branch, task, effects),
                Ok(Begun::Items(_) | Begun::Nothing) => {}
                Err(fault) => self.finished_item(&work, Err(fault), effects),
            }
        }
        if let Some(collected) = self.items(id).and_then(|items| items.collected(map.on_item_error)) {
            let done = match collected {
                Ok(list) => finish(node, self.view(), Ok(list), false),
                Err(fault) => Err(fault),
            };
            self.over(id, done, effects);
        }
    }

    pub(super) fn finished_item(&mut self, work: &WorkId, result: Result<Value, Fault>, effects: &mut Vec<Effect>) {
        let graph = Arc::clone(&self.graph);
        let (Some(place), Some(node)) = (work.item, graph.node(&work.node)) else { return };
        let Kind::Map(map) = &node.kind else { return };
        let Some(branch) = graph.node(&map.branch) else { return };
        let Some(items) = self.items(&work.node).filter(|items| items.running.contains(&place)) else { return };
        let Some(item) = items.items.get(place).cloned() else { return };
        let result = finish(branch, self.item_view(map, item), result, true).and_then(|done| {
            // Without a rule for failed items, what a fallback leaves is a result like others.
            match done.fell_back.clone() {
                Some(fault) if map.on_item_error.is_some() => Err(fault),
                fell_back => {
                    let note =
                        fell_back.map(|fault| Note::FellBack { node: branch.id.clone(), item: Some(place), fault });
                    effects.extend(note.map(Effect::Note));
                    item_result(done, &map.output_key)
                }
            }
        });
        if let Some(items) = self.items(&work.node) {
            items.put(place, result);
        }
    }

    fn items(&mut self, id: &str) -> Option<&mut Items> {
        match self.open.as_mut()?.branches.get_mut(id)? {
            Branch::Items(items) => Some(items),
            _ => None,
        }
    }

    fn item_view(&self, map: &MapNode, item: Value) -> View<'_> {
        View { own: Map::from_iter([(map.item.clone(), item)]), ..self.view() }
    }
}
