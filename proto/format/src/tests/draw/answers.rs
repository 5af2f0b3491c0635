//! Answers to commands.

use atlas_types::*;

use super::{Draw, Sample};

impl Sample for Outcome {
    fn sample(draw: &mut Draw) -> Self {
        draw.outcome()
    }
}

impl Draw {
    fn outcome(&mut self) -> Outcome {
        match self.below(13) {
            0 => Outcome::Done,
            1 => Outcome::Submitted { job: self.value(), repeated: self.flag() },
            2 => Outcome::Granted { token: self.value(), attempt: Attempt(self.u32()) },
            3 => Outcome::Ended { status: self.pick(&JobStatus::ALL), retry: self.value() },
            4 => Outcome::Cancelled { accepted: self.flag() },
            5 => Outcome::NodeRegistered { epoch: NodeEpoch(self.u64()) },
            6 => Outcome::Pruned { jobs: self.u64() },
            9 => Outcome::Delivered { repeated: self.flag() },
            8 => Outcome::Parked { ready: self.flag() },
            7 => Outcome::MemberJoined { member: MemberId(self.u64()) },
            10 => Outcome::ObjectPut { uid: EventSeq(self.u64()), revision: EventSeq(self.u64()) },
            11 => Outcome::RunStarted { run: RunId(self.u64()) },
            _ => Outcome::TokenMade { salt: self.u128(), expires: ClusterTime(self.u64()) },
        }
    }

    fn rejection(&mut self) -> Rejection {
        match self.below(53) {
            0 => Rejection::QueueFull { active: self.u64() },
            1 => Rejection::LimitReached { what: self.pick(&Rejection::LIMITS), limit: self.u64() },
            2 => Rejection::PayloadTooLarge { bytes: self.u64() },
            3 => Rejection::RequestConflict,
            4 => Rejection::DuplicateJob { job: self.value() },
            5 => Rejection::StaleAgent,
            6 => Rejection::UnknownAgent,
            7 => Rejection::UnknownJob { job: self.value() },
            8 => Rejection::WrongStatus { status: self.pick(&JobStatus::ALL) },
            9 => Rejection::Fenced,
            10 => Rejection::UnknownNode { node: self.node_id() },
            11 => Rejection::NodeUnavailable,
            12 => Rejection::NodeBusy { leases: self.u64() },
            13 => Rejection::DoesNotFit,
            14 => Rejection::NotDue,
            15 => Rejection::NotConfirmed,
            16 => Rejection::NotInDoubt { status: self.pick(&JobStatus::ALL) },
            17 => Rejection::LevelTooLow { needed: Level(self.u32()) },
            18 => Rejection::TokenRefused,
            19 => Rejection::LabelOfWorker { key: self.text() },
            20 => Rejection::GpuTwice { index: self.u32() },
            21 => Rejection::AgentInService,
            22 => Rejection::AgentInUse { jobs: self.u64() },
            23 => Rejection::StepGap { from: self.u64(), next: self.u64() },
            24 => Rejection::StepDiffers {
                step: self.u64(),
                recorded_kind: self.pick(&StepKind::ALL),
                recorded: StepKey(self.array()),
                sent_kind: self.pick(&StepKind::ALL),
                sent: StepKey(self.array()),
            },
            25 => Rejection::StepsFolded { upto: self.u64(), first: self.u64() },
            26 => Rejection::NotJournaled,
            27 => Rejection::JournalLength { sent: self.u64(), recorded: self.u64() },
            28 => Rejection::NothingAwaited,
            29 => Rejection::MessageGap { read: self.u64(), delivered: self.u64() },
            30 => Rejection::MessageConflict { message: self.message_id() },
            31 => Rejection::UnknownObject,
            32 => Rejection::ObjectChanged { revision: EventSeq(self.u64()) },
            33 => Rejection::UnknownObjectKind,
            34 => Rejection::ObjectRefused { field: self.text() },
            35 => Rejection::ObjectInUse { what: self.pick(&Rejection::LIMITS) },
            37 => Rejection::FoldInline,
            38 => Rejection::NeedsRun,
            39 => Rejection::NeedsLease,
            41 => Rejection::NotCarried,
            47 => Rejection::RouteOutdated,
            40 => Rejection::RunTaken { job: self.value() },
            36 => Rejection::NamespaceLimit { what: self.pick(&Rejection::LIMITS), limit: self.u64() },
            42 => Rejection::UnknownRun { run: RunId(self.u64()) },
            43 => Rejection::StaleRun,
            44 => Rejection::UnknownQuestion,
            45 => Rejection::QuestionClosed,
            46 => Rejection::NotAnswerer,
            48 => Rejection::Unapproved,
            49 => Rejection::VersionTaken,
            51 => Rejection::OverBudget { budget: self.u64(), spent: self.u64() },
            52 => Rejection::BudgetReserved,
            _ => Rejection::Internal,
        }
    }

    pub(crate) fn outcomes(&mut self) -> Vec<Result<Outcome, Rejection>> {
        self.list(|draw| if draw.flag() { Ok(draw.outcome()) } else { Err(draw.rejection()) })
    }
}
