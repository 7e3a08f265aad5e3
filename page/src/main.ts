import { mount } from "svelte";
import Page from "./Page.svelte";
import "./style.css";

mount(Page, { target: document.getElementById("page") as HTMLElement });
