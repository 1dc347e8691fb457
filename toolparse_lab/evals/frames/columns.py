"""Every column of every frame, declared once: name, dtype and one line of meaning.

`dtype` is the name pandas knows. ``category`` columns hold text that is never empty. Columns whose
name ends in ``_json`` hold canonical JSON text, because dicts do not survive Parquet. Beside the
declared columns the trials frame has one ``metadata_<key>`` column of text for every metadata key
of its cases. A row of it holds everything that reading and scoring its answer takes, so that
`parse_frame` can do both again anywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Column:
    """One column of one kind of frame. See the head of this file for its dtype."""

    frame: str
    name: str
    dtype: str
    meaning: str


# A frame begins at the margin, perhaps with those whose columns are its first; its own follow, each
# with name, dtype and meaning. A line that is further in goes on with the meaning.
_TABLE = r"""
keys
  run_id category The run this row belongs to.
  trial_id string One answer, parsed by one protocol under one policy.
  case_id string The case that was asked.
  trial Int64 The repetition, from 0.
  model category The alias of the model.
  arm category The arm of the experiment.
  prompt_protocol category The format that the prompt asked for.
  parse_protocol category The protocol that parsed the answer.
  policy category The coercion policy.
runs
  run_id string The run.
  created string When it began, ISO time.
  status category running, complete, incomplete or interrupted.
  stop_reason string Why it stopped before its plan was done.
  n_cases Int64 Cases in the plan.
  n_models Int64 Models in the plan.
  n_arms Int64 Arms in the plan.
  n_trials Int64 Repetitions in the plan.
  planned Int64 Completions in the plan.
  recorded Int64 Completions recorded.
  failed Int64 Recorded failures of a provider.
  cost Float64 US dollars spent.
  max_cost Float64 US dollars allowed.
  version string Version of toolparse_lab that ran it.
  plan_json string The plan.
trials keys
  parse_version category The version of the parser; missing where it has none or nothing was
      parsed.
  category category The category of the case.
  input string The user's text, or the messages as JSON.
  target string The wanted calls as JSON; [] where none is wanted, missing where not graded.
  tools_json category The tools of the case: with them the row can be read again.
  tool_choice category What the first turn was to do: auto, required, none, or the tool's name as
      JSON.
  raw string The model's text; lone surrogates are written as \udXXX.
  raw_surrogates_json string Offsets in raw of what is written so; missing where there is nothing
      such.
  reasoning string What the model thought, where the provider gives it apart from raw.
  outcome category The outcome of the trial.
  sub_code category What kind of wrong call, cut or failure.
  detail string The outcome in one sentence.
  missing_reason string Why the trial has no score; missing if it has one.
  note string A person's note on the trial.
  override string The outcome that a person set by hand; no score and no rate goes by it.
  override_why string The person's reason for it.
  score_success boolean Success under this row's policy.
  score_strict boolean Success as written: no edit, no reading step, no coercion.
  score_repaired boolean Success with edits, without coercion.
  score_safe boolean Success with lossless coercion only.
  score_naive boolean What a regex for a JSON object and json.loads would have scored.
  score_fabricated boolean A call has a name or value that is not in the text; missing where
      there is no call.
  matching category The strictest comparison of values under which the calls are right: exact,
      casefold, normalised, approximate or any value; missing where none is.
  score_answer boolean The conversation ended with the wanted text; missing where none is wanted.
  score_corrected boolean Success with the refused calls as corrected; missing where the arm has
      no corrections.
  n_turns Int64 Questions answered in the conversation; missing where its arm asks one question,
      like the next.
  n_corrections Int64 Those of them that were about a refused call.
  stop string Why the conversation ended, see flow.STOPS.
  final_text string The text it ended with.
  n_ran Int64 Calls whose tools ran.
  n_failed Int64 Calls whose tools failed.
  n_rejected Int64 Calls that were not run because their arguments do not fit the schema.
  conversation_tokens Int64 Tokens sent and received in all turns, where they were counted.
  conversation_cost Float64 US dollars of all turns, where prices are known.
  verdict category The worst verdict of the calls: none, clean, repaired (lossless), repaired
      (lossy), unchecked, invalid, refused, truncated or echoed.
  n_calls Int64 Calls found.
  n_ok Int64 Calls that are readable, complete and of a known name.
  n_valid Int64 Calls whose arguments satisfy the schema.
  n_edits Int64 Repairs made.
  n_reads Int64 Reading steps made (aliases, double encoding).
  n_coercions Int64 Coercions made.
  n_problems Int64 Complaints.
  n_unchecked Int64 Values that a broken schema could not check.
  n_unknown_arguments Int64 Arguments that the tool does not have, where its schema is silent.
  error_code category What stops the first call that cannot be executed, else the first other
      complaint of severity error.
  codes_json string Code -> number of complaints of severity error or warning.
  rules_json string Rule -> number of times it was applied.
  rescues_json string Rule -> how many of the values it changed are right, and how many wrong,
      each judged at its own place.
  status category ok or error, of the completion.
  model_name category The model string that was sent, where the record has it.
  served_model category The model that answered, in the answer's own word; missing where it does not
      say.
  served_by category Who answered, where a router or a fallback says so.
  endpoint category The path that was asked, such as /v1/chat/completions.
  sampling_json category What went out beside the question: temperature, seed, max_tokens, effort,
      thinking, extra_body …; one that is not there was left to the provider.
  error category The class of a provider's failure.
  error_message string Its message, redacted.
  error_param category The parameter that the endpoint refused.
  finish_reason category Why the answer ended, in the provider's words.
  prompt_tokens Int64 Tokens sent.
  completion_tokens Int64 Tokens received.
  total_tokens Int64 Both.
  tokens_estimate Int64 Those of an answer beside which the provider counted zero, by OpenAI's
      tokenizer cl100k_base; in no other figure.
  reasoning_tokens Int64 Those of the received that were reasoning, for Anthropic as litellm
      estimates them; missing where they are not counted, like the next two.
  cached_tokens Int64 Those of the sent that the provider had in its cache.
  cache_write_tokens Int64 Those of the sent that it wrote into its cache.
  cost Float64 US dollars.
  latency Float64 Seconds from request to end.
  ttft Float64 Seconds from request to the first chunk.
  queue_wait Float64 Seconds before the request was sent.
  attempt Int64 The attempt that was recorded, from 1.
  retries Int64 Attempts before it.
  stream boolean True if the answer came as a stream.
  cut boolean A stream without a finish part.
  endpoint_kind category chat_text, native_tools or raw_completion.
  fidelity category wire, sdk, replayed or synthetic; logprobs, token_ids or raw_messages where
      raw was taken from there.
  system_fingerprint string The server's own version mark.
  provider_json string What came with the answer: request id, rate limits, service tier.
  server_json string The server's own calls, where the response held what the model wrote beside
      them.
  blame string Which layer broke the answer, in a sentence; missing where there is nothing to say.
  blame_layer category The layer: model, sampler, template, server, transport, client, reader, none
      or cannot_tell.
  blame_code category What was found, as call_in_reasoning, dropped_by_server, markup_in_content or
      all_output_lost; missing where the outcome says more.
  arguments_text category lost where a log kept the arguments as objects and not as the model wrote
      them; score_strict is missing there.
  completion_key string Key of the recorded completion.
  created string When it was recorded, ISO time.
calls keys
  call_id string trial_id/index.
  index Int64 Place among the calls of the text, from 0.
  name string The tool's name.
  status category ok, unknown_tool, truncated, undecodable, echoed or draft.
  verdict category The verdict on the call, as in the trials frame but never none.
  ok boolean Readable, complete and of a known name.
  valid boolean ok, and the arguments satisfy the schema.
  confidence Float64 1 for a call in its own format, lower for a recovered one.
  wire_format category The format the call was written in.
  wire_id string The id the text itself carries.
  arguments_json string The arguments after coercion.
  source_json string The arguments as found.
  start Int64 First code point of the call in raw.
  end Int64 Code point after its last.
  closed boolean Whether its closer was found.
  n_edits Int64 Repairs made.
  n_reads Int64 Reading steps made.
  n_coercions Int64 Coercions made.
  n_unchecked Int64 Values that a broken schema could not check.
  n_unknown_arguments Int64 Arguments that the tool does not have, where its schema is silent.
  error_code category The first complaint of severity error.
  codes_json string Code -> number of complaints of severity error or warning.
  rules_json string Rule -> number of times it was applied.
events keys
  call_id string trial_id/index; missing for what concerns the whole text.
  kind category step, problem or retry.
  stage category scan, repair, decode, read, coerce or validate.
  code category Rule id of a step, code of a problem, class of a failure.
  severity category Of a problem: error, warning or info.
  lossless boolean Of a step: nothing was guessed or dropped.
  path string JSON Pointer into the arguments.
  start Int64 First code point concerned in raw.
  end Int64 Code point after the last.
  before_json string Of a step: the changed subtree before.
  after_json string Of a step: the changed subtree after.
  message string The sentence of the rule or problem.
chunks
  completion_key string Key of the recorded completion.
  trial_id string A trial that read it, where the source was trials.
  case_id string Its case.
  index Int64 Place in the stream, from 0.
  at Float64 Seconds since the request was sent.
  kind category content or reasoning.
  text string The text as received; lone surrogates are written as \udXXX.
  start Int64 First code point in the joined text of its kind.
  end Int64 Code point after its last.
readings
  reading string The protocol, or the name of the parser that was passed.
  kind category protocol, or outside for a parser that was passed.
  agrees category The same letter for the same executable calls; missing where there are none.
  n_calls Int64 Calls found.
  n_ok Int64 Calls that are readable, complete and of a known name.
  n_executable Int64 Those of them whose arguments satisfy the schema.
  n_repairs Int64 Repairs made; missing for an outside parser, like the next.
  n_coercions Int64 Coercions made.
  calls_json string The calls, [{name, arguments}]; arguments are null where they could not be
      read.
  text string The text outside calls, markup and reasoning.
  error_codes string The codes of its complaints of severity error, with commas between.
  failure string What an outside parser raised, or why what it returned is no list of calls.
checks
  model category The alias of the model.
  protocol category The protocol whose delimiters were tried, or native.
  verdict category ok, failed (of the endpoint) or uncertain (the model did not do as it was
      told).
  why string The reason in one sentence.
  notes string What is worth knowing and changes no verdict.
  tools_sent boolean Of native: the body that was sent held the tool as a tool.
  raw string The answer as recorded.
  reasoning string Reasoning that came apart from it.
  finish_reason string In the provider's word.
  error string The class of a failure.
  endpoint_kind string chat_text, native_tools or raw_completion.
  sent_json string The body as sent, without messages and tools that were sent as asked for.
  completion_key string Key of the recorded completion.
"""


def _declared() -> dict[str, list[Column]]:
    frames: dict[str, list[Column]] = {}
    for row in re.split(r"\n(?! {3})", _TABLE.strip()):
        words = row.split()
        if not row.startswith(" "):
            frame, *others = words
            inherited = [replace(column, frame=frame) for one in others for column in frames[one]]
            frames[frame] = inherited
        else:
            frames[frame].append(Column(frame, words[0], words[1], " ".join(words[2:])))
    del frames["keys"]
    return frames


_FRAMES = _declared()
COLUMNS = tuple(column for columns in _FRAMES.values() for column in columns)


def columns_of(frame: str) -> tuple[Column, ...]:
    """Return the declared columns of one kind of frame, in order. () for a kind there is not.

    frame: runs, trials, calls, events, chunks, readings or checks.

    >>> [column.name for column in columns_of("chunks")][:3]
    ['completion_key', 'trial_id', 'case_id']
    """
    return tuple(_FRAMES.get(frame, ()))
