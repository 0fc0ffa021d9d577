% The Prolog worker: reads one request term at a time from standard input and writes one response per line.
% Each script is loaded into a temporary module, which is removed afterwards.
:- module(reflect_worker, [serve/0, return/2, score/1, feedback/1, reflect_holds/2]).

:- use_module(library(aggregate)).
:- use_module(library(apply)).
:- use_module(library(error)).
:- use_module(library(gensym)).
:- use_module(library(lists)).
:- use_module(library(modules)).
:- use_module(library(occurs)).
:- use_module(library(sandbox)).

:- dynamic verdict_entry/2.
:- multifile sandbox:safe_primitive/1.

%   Predicates that a script calls to set its verdict. It may also define them itself.
return(Key, Value) :-
    must_be(atomic, Key),
    assertz(verdict_entry(key(Key), Value)).
score(Score) :-
    must_be(number, Score),
    assertz(verdict_entry(key(score), Score)).
feedback(Text) :-
    assertz(verdict_entry(feedback, Text)).

sandbox:safe_primitive(reflect_worker:return(_, _)).
sandbox:safe_primitive(reflect_worker:score(_)).
sandbox:safe_primitive(reflect_worker:feedback(_)).
sandbox:safe_primitive(reflect_worker:reflect_holds(_, _)).

%   Printed text becomes part of the outcome, so printing is safe here; library(sandbox) forbids it.
sandbox:safe_primitive(system:write(_)).
sandbox:safe_primitive(system:writeln(_)).
sandbox:safe_primitive(system:writeq(_)).
sandbox:safe_primitive(system:print(_)).
sandbox:safe_primitive(system:write_canonical(_)).
sandbox:safe_primitive(system:nl).
sandbox:safe_primitive(system:tab(_)).
sandbox:safe_primitive(system:put_char(_)).

serve :-
    set_stream(user_input, encoding(utf8)),
    set_stream(user_output, encoding(utf8)),
    format(user_output, "{\"ready\": true}~n", []),
    flush_output(user_output),
    repeat,
    read_term(user_input, Ask, [module(reflect_worker), double_quotes(string)]),
    (   Ask == end_of_file
    ->  !, halt
    ;   answer(Ask), fail
    ).

answer(ask(Mark, Code, Output, State, Memory, Most)) :-
    set_prolog_flag(stack_limit, Memory),
    retractall(verdict_entry(_, _)),
    nb_setval(reflect_line, 0),
    nb_setval(reflect_quotes, string),
    reset_gensym,
    set_random(seed(42)),
    with_output_to(string(Prints), outcome(Code, Output, State, Outcome)),
    retractall(verdict_entry(_, _)),
    with_output_to(string(Json), catch(write_answer(Outcome, Prints, Most), E, write_broken(E))),
    format(user_output, "~w~w~n", [Mark, Json]),
    flush_output(user_output).

%!  outcome(+Code, +Output, +State, -Outcome)
%   Outcome is value(Value) or failed(Kind, Message, Line). Succeeds exactly once.
outcome(Code, Output, State, Outcome) :-
    M = script,
    catch(in_temporary_module(M,
                              prepare(M, Code, Output, State),
                              run(M, Code, Outcome)),
          Error,
          explain(Error, Outcome)),
    !.
outcome(_, _, _, failed(protocol, "the worker failed internally", 0)).

prepare(M, Code, Output, State) :-
    dynamic(M:state/2),
    dynamic(M:output/1),
    assertz((M:output(V) :- reflect_worker:reflect_holds(Output, V))),
    forall(member(Key-Value, State),
           assertz((M:state(Key, V) :- reflect_worker:reflect_holds(Value, V)))),
    (   member(Sign, ["#=", "#<", "#>", "#\\", "clpfd"]),
        sub_string(Code, _, _, _, Sign)
    ->  use_library(M, clpfd)
    ;   true
    ).

%!  reflect_holds(+Value, ?Asked)
%   Texts of the state are atoms; a string in a query matches the atom with the same text.
reflect_holds(Value, Asked) :-
    (   string(Asked), atom(Value)
    ->  atom_string(Value, Asked)
    ;   nonvar(Asked), Asked = [A|As], nonvar(Value), Value = [V|Vs]
    ->  reflect_holds(V, A),
        reflect_holds(Vs, As)
    ;   Asked = Value
    ).

%   Libraries that a script may import. Others are autoloaded when they are called.
library_allowed(L) :-
    memberchk(L, [ aggregate, apply, assoc, clpfd, dicts, error, gensym, heaps, lists, nb_set, occurs,
                   option, ordsets, pairs, random, rbtrees, solution_sequences, strings, terms,
                   ugraphs, yall, dcg/basics, dcg/high_order ]).

use_library(M, L) :-
    (   ground(L), library_allowed(L)
    ->  @(use_module(library(L)), M)
    ;   permission_error(use, library, L)
    ).

run(M, Code, Outcome) :-
    read_code(M, Code, Items),
    rule_heads(Items, Rules),
    maplist(classify(M, Rules), Items, Classified),
    forall(member(clause(Line, Clause), Classified), add_clause(M, Line, Clause)),
    findall(Head, (member(clause(_, Clause), Classified), clause_head(Clause, Head)), Heads),
    findall(Line-Goal,
            ( member(goal(Line, Goal0), Classified), expand_dicts(M, Goal0, Goal) ),
            Goals),
    verdict(M, Heads, Goals, Ok),
    value(Ok, Value),
    Outcome = value(Value).

% --- reading

%   The last goal may omit the final dot.
read_code(M, Code, Items) :-
    catch(read_text(M, Code, Items),
          error(syntax_error(end_of_file), Where),
          ( nb_setval(reflect_quotes, string),
            string_concat(Code, "\n.", Closed),
            catch(read_text(M, Closed, Items),
                  error(syntax_error(_), _),
                  throw(error(syntax_error(end_of_file), Where)))
          )).

read_text(M, Code, Items) :-
    setup_call_cleanup(open_string(Code, S),
                       read_items(M, S, Items),
                       close(S)).

read_items(M, S, Items) :-
    nb_getval(reflect_quotes, Quotes),
    read_term(S, Term, [module(M), double_quotes(Quotes), term_position(Pos), syntax_errors(error)]),
    stream_position_data(line_count, Pos, Line),
    at_line(Line),
    stays_inside(Term),
    (   Term == end_of_file
    ->  Items = []
    ;   (   nonvar(Term), Term = (:- Directive), declaration(M, Directive)
        ->  Items = Rest
        ;   Items = [item(Line, Term)|Rest]
        ),
        read_items(M, S, Rest)
    ).

%   The checks apply to the script's own module. A script must not name other modules, because it could
%   change state there that later scripts share.
stays_inside(Term) :-
    (   subsumes_term((:- set_prolog_flag(double_quotes, _)), Term)
    ->  true
    ;   sub_term(Sub, Term),
        compound(Sub),
        leads_outside(Sub)
    ->  permission_error(use, outside, Sub)
    ;   true
    ).

leads_outside(Where:What) :-
    compound(What),
    \+ number(Where).
leads_outside(set_prolog_flag(_, _)).
leads_outside(create_prolog_flag(_, _, _)).

at_line(Line) :-
    nb_setval(reflect_line, Line).

%   Directives that declare something or change how the rest is parsed.
declaration(_, D) :- var(D), !, fail.
declaration(M, (A, B)) :- declaration(M, A), declaration(M, B).
declaration(M, use_module(library(L))) :- use_library(M, L).
declaration(M, use_module(library(L), _)) :- use_library(M, L).
declaration(M, op(P, T, Names)) :-
    (   is_list(Names) -> List = Names ; List = [Names] ),
    forall(member(Name, List), (must_be(atom, Name), op(P, T, M:Name))).
declaration(M, dynamic(Spec)) :- declare(M, dynamic, Spec).
declaration(M, discontiguous(Spec)) :- declare(M, discontiguous, Spec).
declaration(_, style_check(_)).
declaration(_, set_prolog_flag(double_quotes, Value)) :-
    must_be(oneof([codes, chars, atom, string]), Value),
    nb_setval(reflect_quotes, Value).

declare(_, _, Spec) :- var(Spec), !, instantiation_error(Spec).
declare(M, Kind, (A, B)) :- !, declare(M, Kind, A), declare(M, Kind, B).
declare(M, Kind, Specs) :- is_list(Specs), !, forall(member(Spec, Specs), declare(M, Kind, Spec)).
declare(M, Kind, Name/Arity) :-
    must_be(atom, Name),
    must_be(nonneg, Arity),
    Declaration =.. [Kind, M:Name/Arity],
    call(Declaration).

rule_heads(Items, Heads) :-
    findall(Head,
            ( member(item(_, Term), Items),
              nonvar(Term),
              ( Term = (_ :- _) ; Term = (_ --> _) ),
              clause_head(Term, Head)
            ),
            Heads).

clause_head(Term, Name/Arity) :-
    nonvar(Term),
    (   Term = (Head :- _) -> callable(Head), functor(Head, Name, Arity)
    ;   Term = (Head --> _) -> callable(Head), functor(Head, Name, A0), Arity is A0 + 2
    ;   callable(Term), functor(Term, Name, Arity)
    ).

%   A term without `:-` is a goal if it is a control structure, one of our predicates, or a built-in
%   predicate; otherwise it is a fact. A library predicate, whose name may also be that of a user's fact, is a
%   goal if the term has variables.
classify(_, _, item(Line, Term), goal(Line, Term)) :- var(Term), !.
classify(_, _, item(Line, (:- initialization(Goal))), goal(Line, Goal)) :- !.
classify(_, _, item(Line, (:- initialization(Goal, _))), goal(Line, Goal)) :- !.
classify(_, _, item(Line, (:- Goal)), goal(Line, Goal)) :- !.
classify(_, _, item(Line, (?- Goal)), goal(Line, Goal)) :- !.
classify(_, _, item(Line, Term), clause(Line, Term)) :- ( Term = (_ :- _) ; Term = (_ --> _) ), !.
classify(M, Rules, item(Line, Term), Class) :-
    (   callable(Term), \+ is_goal(M, Rules, Term)
    ->  Class = clause(Line, Term)
    ;   Class = goal(Line, Term)
    ).

is_goal(M, Rules, Term) :-
    functor(Term, Name, Arity),
    (   memberchk(Name/Arity, Rules)
    ->  Arity =:= 0
    ;   memberchk(Name/Arity, [state/2, output/1, return/2, score/1, feedback/1])
    ->  true
    ;   predicate_property(system:Term, defined)
    ->  true
    ;   \+ ground(Term),
        predicate_property(M:Term, visible)
    ).

add_clause(M, Line, Term) :-
    at_line(Line),
    (   Term = (_ --> _) -> dcg_translate_rule(Term, Clause0) ; Clause0 = Term ),
    clause_head(Clause0, Name/_),
    (   memberchk(Name, [term_expansion, goal_expansion])
    ->  permission_error(define, hook, Name)
    ;   true
    ),
    (   Clause0 = (Head :- Body0)
    ->  expand_dicts(M, Body0, Body),
        Clause = (Head :- Body)
    ;   Clause = Clause0
    ),
    assertz(M:Clause).

%   Expands `Dict.key` in a goal into a separate goal before it.
expand_dicts(M, Goal0, Goal) :-
    (   sub_term(Sub, Goal0),
        compound(Sub),
        compound_name_arity(Sub, '.', 2)
    ->  @(expand_goal(Goal0, Goal), M)
    ;   Goal = Goal0
    ).

% --- running

%   Runs the goals in order; without any, evaluate/0, main/0 or valid/0. Then calls score/1, feedback/1 and
%   return/2 if the script defines them.
verdict(M, Heads, Goals, Ok) :-
    (   Goals == []
    ->  findall(0-Name, ( member(Name, [evaluate, main, valid]), memberchk(Name/0, Heads) ), Entries),
        first(Entries, Run)
    ;   Run = Goals
    ),
    findall(H, ( member(H, [score/1, feedback/1, return/2]), memberchk(H, Heads) ), Own),
    (   Run == [], Own == []
    ->  throw(reflect_nothing_to_run)
    ;   true
    ),
    run_goals(Run, M, Ok),
    at_line(0),
    (   memberchk(score/1, Own), solve(M, score(S)) -> score(S) ; true ),
    (   memberchk(feedback/1, Own)
    ->  safe(M, feedback(_)), forall(M:feedback(F), feedback(F))
    ;   true
    ),
    (   memberchk(return/2, Own)
    ->  safe(M, return(_, _)), forall(M:return(K, V), return(K, V))
    ;   true
    ).

first([E|_], [E]) :- !.
first([], []).

run_goals([], _, true).
run_goals([Line-Goal|Rest], M, Ok) :-
    at_line(Line),
    (   solve(M, Goal)
    ->  run_goals(Rest, M, Ok)
    ;   Ok = false
    ).

solve(M, Goal) :-
    safe(M, Goal),
    call(M:Goal),
    !.

safe(M, Goal) :-
    must_be(callable, Goal),
    safe_goal(M:Goal).

% --- the value

value(Ok, Value) :-
    findall(Key-V, verdict_entry(key(Key), V), Keys),
    findall(F, verdict_entry(feedback, F), Feedback),
    (   Keys == [], Feedback == []
    ->  Value = Ok
    ;   Ok == true, Feedback == [], forall(member(Key-_, Keys), Key == result)
    ->  last(Keys, _-Value)
    ;   Value = reflect_object(Ok, Keys, Feedback)
    ).

write_value(reflect_object(Ok, Keys0, Feedback)) :-
    !,
    (   Feedback == []
    ->  Keys1 = Keys0
    ;   maplist(text_of_value, Feedback, Texts),
        atomic_list_concat(Texts, '\n', Text0),
        atom_string(Text0, Text),
        append(Keys0, [feedback-Text], Keys1)
    ),
    (   Ok == false
    ->  append(Keys1, [valid-false], Keys2)
    ;   ( memberchk(valid-_, Keys1) ; memberchk(score-_, Keys1) )
    ->  Keys2 = Keys1
    ;   append(Keys1, [valid-true], Keys2)
    ),
    last_of_each(Keys2, Keys),
    write_pairs(Keys).
write_value(Value) :-
    write_json(Value).

text_of_value(V, Text) :-
    (   ( atom(V) ; string(V) ; number(V) ) -> Text = V ; format(string(Text), "~q", [V]) ).

last_of_each([], []).
last_of_each([K-V|Rest], Kept) :-
    (   memberchk(K-_, Rest) -> Kept = More ; Kept = [K-V|More] ),
    last_of_each(Rest, More).

write_json(V) :- var(V), !, write(null).
write_json(V) :- cyclic_term(V), !, throw(reflect_not_json("a cyclic term")).
write_json([]) :- !, write([]).
write_json(true) :- !, write(true).
write_json(false) :- !, write(false).
write_json(null) :- !, write(null).
write_json(V) :- integer(V), !, write(V).
write_json(V) :- float(V), !,
    float_class(V, Class),
    (   memberchk(Class, [infinite, nan])
    ->  throw(reflect_not_json("a number that is infinite or not a number"))
    ;   write(V)
    ).
write_json(V) :- rational(V), !, F is float(V), write_json(F).
write_json(V) :- ( string(V) ; atom(V) ), !, write_text(V).
write_json(V) :- is_dict(V), !, dict_pairs(V, _, Pairs), write_pairs(Pairs).
write_json(V) :- is_list(V), !, V = [First|Rest],
    write('['), write_json(First),
    forall(member(Item, Rest), ( write(','), write_json(Item) )),
    write(']').
write_json(V) :-
    format(string(Text), "~q", [V]),
    write_text(Text).

write_pairs(Pairs) :-
    write('{'),
    foldl(write_pair, Pairs, first, _),
    write('}').

write_pair(Key-Value, Place, later) :-
    (   Place == first -> true ; write(',') ),
    format(string(Text), "~w", [Key]),
    write_text(Text),
    write(':'),
    write_json(Value).

write_text(Text) :-
    string_codes(Text, Codes),
    put_char('"'),
    maplist(write_code, Codes),
    put_char('"').

write_code(0'") :- !, write('\\"').
write_code(0'\\) :- !, write('\\\\').
write_code(C) :- C < 32, !, format("\\u~|~`0t~16r~4+", [C]).
write_code(C) :- C >= 0xD800, C =< 0xDFFF, !, put_char('\uFFFD').
write_code(C) :- put_code(C).

write_answer(value(Value), Prints, Most) :-
    !,
    with_output_to(string(Json), write_value(Value)),
    string_length(Json, Size),
    string_length(Prints, Printed),
    (   Size > Most
    ->  format(string(Message), "it returned more than ~d bytes", [Most]),
        write_failed(output, Message, 0, "")
    ;   Printed > Most
    ->  format(string(Message), "it printed more than ~d bytes", [Most]),
        write_failed(output, Message, 0, "")
    ;   format("{\"value\":~w,\"prints\":", [Json]),
        write_text(Prints),
        write('}')
    ).
write_answer(failed(Kind, Message, Line), Prints, Most) :-
    string_length(Prints, Printed),
    (   Printed > Most -> Shown = "" ; Shown = Prints ),
    write_failed(Kind, Message, Line, Shown).

write_failed(Kind, Message, Line, Prints) :-
    format("{\"error\":{\"kind\":\"~w\",\"message\":", [Kind]),
    write_text(Message),
    (   Line > 0 -> format(",\"line\":~d", [Line]) ; true ),
    write('},"prints":'),
    write_text(Prints),
    write('}').

write_broken(reflect_not_json(What)) :-
    !,
    format(string(Message), "it returned ~w, which JSON cannot represent", [What]),
    write_failed(protocol, Message, 0, "").
write_broken(error(resource_error(_), _)) :-
    !,
    write_failed(memory, "its value exceeds the memory limit", 0, "").
write_broken(Error) :-
    message_text(Error, Text),
    write_failed(protocol, Text, 0, "").

% --- errors

explain(Error, failed(Kind, Message, Line)) :-
    nb_getval(reflect_line, Current),
    explain_(Error, Current, Kind, Message, Line).

explain_(error(syntax_error(What), Where), _, syntax, Message, Line) :-
    error_line(Where, Line),
    !,
    message_text(error(syntax_error(What), _), Message).
explain_(error(resource_error(_), _), Line, memory, "it exceeded the memory limit", Line) :- !.
explain_(reflect_nothing_to_run, _, runtime, Message, 0) :-
    !,
    Message = "nothing to run: add a goal (such as `output(O), string_length(O, L), L > 9.`), or define evaluate/0, score/1, feedback/1 or return/2".
explain_(Error, Line, runtime, Message, Line) :-
    message_text(Error, Message).

error_line(stream(_, Line, _, _), Line).
error_line(string(Text, At), Line) :-
    sub_string(Text, 0, At, _, Before),
    split_string(Before, "\n", "", Lines),
    length(Lines, Line).

message_text(error(Formal, _), Text) :-
    nonvar(Formal),
    catch(phrase('$messages':translate_message(error(Formal, _)), Lines), _, fail),
    with_output_to(string(Text0), print_message_lines(current_output, '', Lines)),
    split_string(Text0, "", " \n", [Text]),
    !.
message_text(Error, Text) :-
    format(string(Text), "~q", [Error]).
